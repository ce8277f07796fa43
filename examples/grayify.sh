#!/bin/sh
# Turns a colour picture (plain PPM, "P3") into shades of gray, with nothing but awk.
set -eu
name=$(basename "$INPUT_FILE_PATH")
echo "grayify: $name on $(hostname) for job $JOB_UUID"
tr -s ' \t\r\n' '\n' < "$INPUT_FILE_PATH" | awk '
    NR == 1 { if ($1 != "P3") { print "not a plain PPM picture" > "/dev/stderr"; exit 1 } print "P2"; next }
    NR <= 4 { header[NR] = $1; if (NR == 4) print header[2], header[3] "\n" header[4]; next }
    { value[++n] = $1 }
    n == 3 { print int(0.299 * value[1] + 0.587 * value[2] + 0.114 * value[3] + 0.5); n = 0 }
' > "$TMP_OUTPUT_DIR/${name%.*}.pgm"
