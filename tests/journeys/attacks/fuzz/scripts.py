"""Scripts of a hostile tenant: they print whatever they can see, and write wherever they can."""

from hypothesis import strategies as st

_LOOK = """
env; id; cat "$INPUT_FILE_PATH"
find / -path /usr -prune -o -path /proc -prune -o -path /etc -prune -o -type f -size -64k -print 2>/dev/null \
  | head -200 | xargs -r -d '\\n' head -v -c 2000
ls -laR /mnt /job /data /home /run /tmp 2>/dev/null | head -100
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'
cat @CANARY@ @DATA@/vault.key @DATA@/hansa.db @DATA@/volumes/@NAMESPACE@/@VOLUME@/* /mnt/@BUCKET@/*/* 2>/dev/null
"""
_CALL = """
for host in 127.0.0.1 @OWN@ ::1; do (echo hello >/dev/tcp/$host/@PORT@) 2>/dev/null && echo REACHED $host; done
"""
_WRITE = """
for folder in "$TMP_OUTPUT_DIR" /mnt/*/* /mnt/* /data @DATA@/volumes/@NAMESPACE@/@VOLUME@; do
  for name in planted x in/x ../planted; do echo planted >"$folder/$name"; done
done 2>/dev/null
"""
_LINKS = """
cd "$TMP_OUTPUT_DIR" && ln -s @CANARY@ canary; ln -s /proc/self/environ environ; ln -s @DATA@ data; ln -s / root
ln -s @DATA@/volumes/@NAMESPACE@/@VOLUME@ volume; mkfifo waiting; ln @CANARY@ hard
cp "$INPUT_FILE_PATH" copied; mkdir -p in out; echo planted >in/x
"""
_SWAP = """
mv "$TMP_INPUT_DIR" /job/gone; ln -s @DATA@ "$TMP_INPUT_DIR"; mv "$TMP_OUTPUT_DIR" /job/away
ln -s @DATA@/volumes/@NAMESPACE@ "$TMP_OUTPUT_DIR"
"""
_LISTENING = "exec /usr/bin/python3 -m http.server 8080 --directory /"


def _bash(*parts: str) -> str:
    """Ends well, for only then are its outputs stored."""
    return "\n".join(("exec /bin/bash -s <<'END'", "exec 2>&1", *parts, "exit 0", "END", ""))


PRYING = "@PRYING@"
WORDS = {
    PRYING: _bash(_LOOK, _CALL, _WRITE),
    "@LINKING@": _bash(_LINKS, _LOOK),
    "@SWAPPING@": _bash(_LOOK, _SWAP, _WRITE),
    "@LEAVING@": _bash("kill -9 -1", "(sleep 1; cat @CANARY@ /mnt/*/*/*) &"),
    "@SLEEPING@": _bash("exec sleep 1"),
    "@LISTENING@": _bash(_LISTENING),
}
scripts = st.sampled_from(tuple(WORDS))
HOSTILE = (PRYING, "@LINKING@", "@SWAPPING@", "@LEAVING@")
hostile = st.sampled_from((PRYING, PRYING, PRYING, *HOSTILE, *HOSTILE[1:]))
