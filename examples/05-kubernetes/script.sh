#!/bin/sh
# Counts the words of one text, and tells which pod did it. Slowly, so that two meet.
set -eu
name=$(basename "$INPUT_FILE_PATH")
sleep 30
echo "$name has $(wc -w < "$INPUT_FILE_PATH") words, counted in $(hostname)" | tee "$TMP_OUTPUT_DIR/$name"
