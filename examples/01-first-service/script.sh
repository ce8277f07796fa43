#!/bin/sh
# The job gets one input file and leaves its results in $TMP_OUTPUT_DIR.
set -eu

name=$(basename "$INPUT_FILE_PATH")
lines=$(wc -l < "$INPUT_FILE_PATH" | tr -d ' ')
words=$(wc -w < "$INPUT_FILE_PATH" | tr -d ' ')

echo "$name has $lines lines and $words words"
tr '[:lower:]' '[:upper:]' < "$INPUT_FILE_PATH" > "$TMP_OUTPUT_DIR/$name"
