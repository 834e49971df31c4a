"""`lazy`: a property that is computed on first use and kept, like `functools.cached_property` without its lock."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - a decorator, named as one
    """For values that cannot change: two threads may compute the same value twice."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> "lazy[T]": ...

        @overload
        def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> "lazy[T] | T":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
