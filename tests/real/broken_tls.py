"""A server that finishes its TLS handshake, and then sends what is no TLS."""

import asyncio
import os


async def send_broken_record(writer: asyncio.StreamWriter) -> None:
    """What was written before arrives whole; then comes a record that nobody can decrypt."""
    await writer.drain()
    os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
