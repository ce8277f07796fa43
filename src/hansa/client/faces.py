"""How does a described operation become a method? Two descriptors, one for each client; the types come along.

`clusters = Waiting(calls.clusters)` in a class is a method with the signature, the defaults and the words of
`calls.clusters`, for people, editors and type checkers alike; only what it returns differs from client to client.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from hansa.client.operations import Operation
from hansa.client.transports import AsyncTransport, SyncTransport

P = ParamSpec("P")
T = TypeVar("T")


class Waiting(Generic[P, T]):
    """A method that returns when the hub has answered."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self.operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, client: SyncTransport, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: SyncTransport | None, owner: type) -> Operation[P, T] | Callable[P, T]:
        if client is None:
            return self.operation

        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.do(self.operation(*args, **kwargs))

        return update_wrapper(method, self.operation.build)


class Awaited(Generic[P, T]):
    """The same, to be awaited."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self.operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, client: AsyncTransport, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: AsyncTransport | None, owner: type
    ) -> Operation[P, T] | Callable[P, Coroutine[Any, Any, T]]:
        if client is None:
            return self.operation

        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await client.do(self.operation(*args, **kwargs))

        return update_wrapper(method, self.operation.build)


class Listening(Generic[P, T]):
    """A method that gives events one by one, waiting for the next."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self.operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, client: SyncTransport, owner: type) -> Callable[P, Generator[T, None, None]]: ...
    def __get__(
        self, client: SyncTransport | None, owner: type
    ) -> Operation[P, T] | Callable[P, Generator[T, None, None]]:
        if client is None:
            return self.operation

        def method(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
            return client.listen(self.operation(*args, **kwargs))

        return update_wrapper(method, self.operation.build)


class AwaitedEvents(Generic[P, T]):
    """The same, for `async for`."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self.operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, client: AsyncTransport, owner: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(
        self, client: AsyncTransport | None, owner: type
    ) -> Operation[P, T] | Callable[P, AsyncGenerator[T, None]]:
        if client is None:
            return self.operation

        def method(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
            return client.listen(self.operation(*args, **kwargs))

        return update_wrapper(method, self.operation.build)
