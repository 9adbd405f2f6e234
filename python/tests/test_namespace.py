"""Names and signatures of the array API standard, as array-api-strict has them."""

from __future__ import annotations

import inspect

import array_api_strict as strict
import pytest

import tilewright as tw

strict.set_array_api_strict_flags(api_version="2025.12")

OWN = {"ArrayAPIStrictFlags", "Device", "get_array_api_strict_flags", "reset_array_api_strict_flags", "set_array_api_strict_flags", "fft", "__version__"}  # fmt: skip


def functions(module):
    return [name for name in module.__all__ if name not in OWN]


def check_signature(ours, theirs):
    """Every parameter of the standard is there, with the same default, and can be passed as the standard does.

    More parameters are fine; and what the standard takes by keyword alone may go by position, too, as it does in NumPy.
    """
    found = inspect.signature(ours).parameters
    for name, wanted in inspect.signature(theirs).parameters.items():
        assert name in found or wanted.kind is inspect.Parameter.POSITIONAL_ONLY, name
        if name not in found:
            continue
        have = found[name]
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if wanted.kind in by_position:
            assert have.kind in by_position, name
        else:
            assert have.kind in (wanted.kind, inspect.Parameter.POSITIONAL_OR_KEYWORD), name
        if wanted.default is inspect.Parameter.empty:
            continue
        assert have.default is not inspect.Parameter.empty, name
        if not repr(wanted.default).startswith("<Undef"):
            assert have.default == wanted.default, name


@pytest.mark.parametrize("name", functions(strict))
def test_main(name):
    ours, theirs = getattr(tw, name), getattr(strict, name)
    if inspect.isfunction(theirs):
        check_signature(ours, theirs)


@pytest.mark.parametrize("name", strict.linalg.__all__)
def test_linalg(name):
    check_signature(getattr(tw.linalg, name), getattr(strict.linalg, name))


@pytest.mark.parametrize("name", strict.fft.__all__)
def test_fft(name):
    check_signature(getattr(tw.fft, name), getattr(strict.fft, name))


def test_array_attributes():
    for name in dir(strict.asarray([1.0])):
        if name.startswith("__") and name.endswith("__") and name not in ("__slots__", "__module__"):
            assert hasattr(tw.Array, name), name


def test_info():
    info = tw.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == tw.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert tw.ones(2).__array_namespace__(api_version="2025.12") is tw
    with pytest.raises(ValueError):
        tw.ones(2).__array_namespace__(api_version="1999.12")
