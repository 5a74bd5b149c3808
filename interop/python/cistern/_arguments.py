"""Converts the arguments of Python programs to those of the C API. ctypes would cut numbers that do
not fit."""

from __future__ import annotations

import operator
import os
import re
from typing import Any, Mapping, Optional, SupportsFloat, SupportsIndex, Union

from ._location import Location
from .errors import InvalidArgumentError

#: Options: "limit:1GiB,recycle:off", or {"limit": 1 << 30, "recycle": "off"}.
Conf = Union[str, Mapping[str, Union[str, int, float, bool]]]
#: A stream: None (the default stream), a number, a cistern.Stream, or a stream of PyTorch, CuPy or
#: whatever else has __cuda_stream__().
StreamLike = Any
#: Bytes: a number, or a text such as "64GiB".
Size = Union[SupportsIndex, str]
PathLike = Union[str, "os.PathLike[str]"]


def whole(value: SupportsIndex, what: str, most: int = 2**64 - 1, least: int = 0) -> int:
    """An int from `least` to `most`."""
    if type(value) is int and least <= value <= most:  # as nearly always
        return value
    if isinstance(value, bool):
        raise TypeError(f"{what} must be an int, not bool")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise InvalidArgumentError(f"{what} is {_shown(number)}: must be {least} to {most}")
    return number


def _shown(number: int) -> str:  # Python writes no more than 4,300 digits
    return str(number) if number.bit_length() <= 256 else f"a number of {number.bit_length()} bits"


_UNITS = {"": 1, "b": 1, "k": 2**10, "kib": 2**10, "kb": 2**10, "m": 2**20, "mib": 2**20, "mb": 2**20, "g": 2**30,
          "gib": 2**30, "gb": 2**30, "t": 2**40, "tib": 2**40, "tb": 2**40}


def size(value: Size, what: str) -> int:
    """An int of bytes, of a number or of a text such as "64GiB". Units are powers of 1,024, as of options."""
    if not isinstance(value, str):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{what} must be an int of bytes or a str such as \"64GiB\", not {type(value).__name__}")
        return whole(value, what)
    found = re.fullmatch(r"\s*([0-9]{1,20}(?:\.[0-9]{0,20})?)\s*([A-Za-z]*)\s*", value)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise InvalidArgumentError(f"{what} is {value[:40]!r}: must be bytes, such as \"64GiB\" or 1 << 36")
    return whole(int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit, what)


def flag(value: bool, what: str) -> bool:
    """True or False: "no" would be true."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be a bool, not {type(value).__name__}")
    return value


def location(value: Location) -> Location:
    try:
        return Location(value)
    except ValueError:
        raise InvalidArgumentError(f"location is {value!r}: must be cistern.Location.DEVICE or .HOST") from None


def real(value: SupportsFloat, what: str) -> float:
    if isinstance(value, (str, bytes, bool, type)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a number, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgumentError(f"{what} is beyond what a float can be") from None


def text(value: str, what: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidArgumentError(f"{what} has a null character in it: {value!r}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} cannot be written in UTF-8: {value!r}") from None


def path(value: PathLike, what: str) -> bytes:
    try:
        name = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{what} must be a path, not {type(value).__name__}") from None
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} cannot be the name of a file: {value!r}") from None
    if b"\0" in name:
        raise InvalidArgumentError(f"{what} has a null character in it: {value!r}")
    return name


def _setting(name: str, value: Union[str, int, float, bool]) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name in conf must be a str, not {type(name).__name__}")
    if isinstance(value, int) and int(value).bit_length() > 256:
        raise InvalidArgumentError(f"conf[{name!r}] is {_shown(value)}: no option takes one")
    if isinstance(value, bool):
        return f"{name}:{'true' if value else 'false'}"
    if isinstance(value, (str, int, float)):
        setting = f"{name}:{value}"
        if "," in re.sub(r"\[[^]]*\]", "", setting):  # but for those of a list
            raise InvalidArgumentError(f"conf[{name!r}] has a comma in it, which would begin another option: {value!r}")
        return setting
    raise TypeError(f"conf[{name!r}] must be a str, number or bool, not {type(value).__name__}")


def conf(value: Optional[Conf]) -> Optional[bytes]:
    """None stays None: the options of $CISTERN_CONF."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = ",".join(_setting(name, setting) for name, setting in value.items())
    if not isinstance(value, str):
        raise TypeError(f"conf must be a str or a mapping, not {type(value).__name__}")
    return text(value, "conf")


def stream(value: StreamLike) -> int:
    if value is None:
        return 0
    number = value
    if hasattr(value, "__cuda_stream__"):
        number = value.__cuda_stream__()[1]
    else:
        for name in ("cuda_stream", "ptr"):  # PyTorch's, CuPy's
            number = getattr(value, name, number)
    if not hasattr(number, "__index__"):
        raise TypeError("stream must be None, an int, or a stream of cistern, PyTorch or CuPy, not "
                        f"{type(value).__name__}")
    return whole(number, "stream")
