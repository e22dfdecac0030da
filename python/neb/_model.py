"""What a surrogate and a source share: settings, and an object of the extension that a fit replaces and nothing changes."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from . import _neb
from ._errors import not_fitted

Inner = TypeVar("Inner", _neb.Surrogate, _neb.Source)
Own = TypeVar("Own", bound="Model[Any]")


def keys(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that were given, by the names they have in a configuration file."""
    return {name.replace("_", "-"): value for name, value in settings.items() if value is not None}


def chosen(preset: str, seed: int) -> dict[str, Any]:
    """Those of both that are not the default, for a repr."""
    return ({} if preset == "fast" else {"preset": preset}) | ({} if seed == 1 else {"seed": seed})


def call(kind: str, settings: dict[str, Any]) -> str:
    """Kind and settings as they would be typed."""
    given = [f"{name.replace('-', '_')}={value!r}" for name, value in settings.items() if value is not None]
    return ", ".join([repr(kind), *given])


class Model(Generic[Inner]):
    """A model of one stage, fitted or not."""

    #: The stage, as the program calls it.
    _stage: ClassVar[str]
    _settings: str
    _inner: Inner | None

    def fitted(self) -> Inner:
        """The extension's object; refuses where there is none yet."""
        if self._inner is None:
            raise not_fitted(self._stage)
        return self._inner

    @property
    def is_fitted(self) -> bool:
        """Whether it can be used."""
        return self._inner is not None

    @property
    def x_names(self) -> list[str]:
        """Names of the columns of x."""
        return self.fitted().x_names

    @property
    def settings(self) -> str:
        """Every setting with its origin, as `neb config` prints them."""
        return _neb.settings(self._settings, self._stage)

    def __copy__(self: Own) -> Own:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self: Own, memo: dict[int, Any]) -> Own:
        # What is shared is never changed: a fit replaces it.
        return self.__copy__()
