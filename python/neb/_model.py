"""What a surrogate and a source share: settings, and an object of the extension that a fit replaces and nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from . import _neb
from ._errors import NebValueError, not_fitted
from ._numbers import plain

Inner = TypeVar("Inner", _neb.Surrogate, _neb.Source)
Own = TypeVar("Own", bound="Model[Any]")


def keys(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that were given, by the names they have in a configuration file."""
    return {name.replace("_", "-"): plain(name, value) for name, value in settings.items() if value is not None}


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
    #: The settings that were given, as JSON; None of a model that was read.
    _settings: str | None
    #: `config.toml` of the run that it was read from, where that tells of its stage.
    _config: str | None = None
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
        """Every setting with its origin, as `neb config` prints them; of a model in the folder of a run, `config.toml` there."""
        return self._config if self._config is not None else _neb.settings(self._given(), self._stage)

    def _given(self) -> str:
        """The settings to fit with; refuses where there are none."""
        if self._settings is None:
            known = self._config is not None
            raise NebValueError(
                "a model that was read is not fitted again" if known else "the settings of a model that was read are not known",
                f"make a new one: neb.{type(self).__name__}(kind, ...)",
            )
        return self._settings

    def _was_read(self, path: Path) -> None:
        """Forgets the default settings; those of a run are in its folder."""
        config = path / "config.toml"
        text = config.read_text() if config.exists() else ""
        self._settings, self._config = None, text if f"[{self._stage}]" in text else None

    def __copy__(self: Own) -> Own:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self: Own, memo: dict[int, Any]) -> Own:
        # What is shared is never changed: a fit replaces it.
        return self.__copy__()
