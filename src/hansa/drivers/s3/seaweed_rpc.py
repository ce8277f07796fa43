"""How do we talk to SeaweedFS beyond S3? Its filer's RPC port: the messages in use, and the proof that we
may.

The messages are declared here field by field instead of generated: a dozen of the several hundred fields
matter, and protobuf skips the rest. Numbers are those of SeaweedFS 4.48. Used by `users.py`,
`seaweed_events.py` and `seaweed_books.py`."""

import time
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from joserfc import jwt
from joserfc.jwk import OctKey

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
}

# message → field → (number, type); "*" marks a repeated field, other names are messages of this table.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Empty": {},
    "Attributes": {
        "file_size": (1, "uint64"), "mtime": (2, "int64"), "mime": (7, "string"), "md5": (14, "bytes"),
    },
    "Extended": {"key": (1, "string"), "value": (2, "bytes")},
    "Chunk": {"fid": (7, "bytes")},
    "Entry": {
        "name": (1, "string"), "is_directory": (2, "bool"), "chunks": (3, "Chunk*"),
        "attributes": (4, "Attributes"), "extended": (5, "Extended*"),
    },
    "Change": {"old_entry": (1, "Entry"), "new_entry": (2, "Entry"), "new_parent_path": (4, "string")},
    "Subscription": {
        "client_name": (1, "string"), "path_prefix": (2, "string"), "since_ns": (3, "int64"),
        "client_id": (7, "int32"), "client_epoch": (9, "int32"),
    },
    "Notice": {"directory": (1, "string"), "event_notification": (2, "Change"), "ts_ns": (3, "int64")},
    "Traversal": {"directory": (1, "string")},
    "Found": {"directory": (1, "string"), "entry": (2, "Entry")},
    "Credential": {"access_key": (1, "string"), "secret_key": (2, "string"), "status": (3, "string")},
    "Identity": {
        "name": (1, "string"), "credentials": (2, "Credential*"), "policy_names": (7, "string*"),
    },
    "IdentityBox": {"identity": (1, "Identity")},
    "IdentityUpdate": {"username": (1, "string"), "identity": (2, "Identity")},
    "UserName": {"username": (1, "string")},
    "UserNames": {"usernames": (1, "string*")},
    "Policy": {"name": (1, "string"), "content": (2, "string")},
    "Policies": {"policies": (1, "Policy*")},
}  # fmt: skip


def _declared() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="hansa_seaweed.proto", package="hansa", syntax="proto3")
    for name, declared in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in declared.items():
            plain = kind.removesuffix("*")
            label = _FIELD.LABEL_REPEATED if kind != plain else _FIELD.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            added.type = _SCALARS.get(plain, _FIELD.TYPE_MESSAGE)
            if plain not in _SCALARS:
                added.type_name = f".hansa.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call, unused-ignore]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"hansa.{name}")) for name in _MESSAGES}


MESSAGES: dict[str, Any] = _declared()


@dataclass(frozen=True, slots=True)
class Filer:
    """Where the filer's RPC port is, and the key that signs our right to administer users."""

    target: str  # host:port
    admin_key: str

    def __repr__(self) -> str:
        return f"Filer({self.target!r}, ***)"

    def channel(self) -> Any:
        """To be made where the event loop runs, and closed by whoever made it."""
        return grpc.aio.insecure_channel(
            self.target,
            options=[
                ("grpc.enable_http_proxy", 0),  # a proxy from the environment never leads to this machine
                (
                    "grpc.max_receive_message_length",
                    64 * 2**20,
                ),  # an object of many chunks makes a long message
            ],
        )

    def proof(self) -> tuple[tuple[str, str], ...]:
        """Once weed has a filer signing key, its user administration asks for a token signed with it."""
        key = OctKey.import_key(self.admin_key)
        token = jwt.encode({"alg": "HS256"}, {"exp": int(time.time()) + 60}, key)
        return (("authorization", f"Bearer {token}"),)


def unary(channel: Any, method: str, request: str, answer: str) -> Any:
    """A call of one message and one answer, both named as in the table above."""
    return channel.unary_unary(
        method,
        request_serializer=MESSAGES[request].SerializeToString,
        response_deserializer=MESSAGES[answer].FromString,
    )


def stream(channel: Any, method: str, request: str, answer: str) -> Any:
    return channel.unary_stream(
        method,
        request_serializer=MESSAGES[request].SerializeToString,
        response_deserializer=MESSAGES[answer].FromString,
    )
