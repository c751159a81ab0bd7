"""Install the packages of lock files, with their hashes, by uv.

    .venv/bin/python infra/install.py backend/requirements-dev.lock [--editable backend testing] [--python PATH]

`--editable` needs the packages that build the project: `backend/requirements-dev.lock` and `requirements-build.lock` have them.

uv installs in seconds what takes pip more than a minute. pip installs uv itself, in the version and with the hashes of
`backend/requirements-dev.lock`. uv does not read pip's settings, so this program passes on what they say about package indexes.
uv does not compile packages: Python compiles each module when it is first imported.

Without this program, `python -m pip install --require-hashes -r LOCK` installs the same packages.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LOCK_OF_UV = Path(__file__).resolve().parents[1] / "backend" / "requirements-dev.lock"
UV = Path(sys.executable).with_name("uv")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_YES = ("1", "true", "yes", "on")
_SECTIONS = ("global", "install", ":env:")
"""Sections of pip's settings, from the weakest to the strongest."""
_VARIABLES: Mapping[str, tuple[str, str]] = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
"""For each setting of pip: the variable of uv, and what separates several values in it."""


def pip_settings(listed: str) -> dict[str, str]:
    """Return name and value of each setting in the output of ``pip config list``, by pip's order of precedence."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for section, name, value in re.findall(r"^([\w:]+)\.([\w-]+)=(.+)$", listed, re.MULTILINE):
        if section in found:
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in _SECTIONS for name, value in found[section].items()}


def uv_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables by which uv uses the same indexes as pip."""
    variables = {}
    for name, value in settings.items():
        if name in _VARIABLES:
            variable, separator = _VARIABLES[name]
            variables[variable] = separator.join(value.split())
    if "UV_INDEX" in variables:
        # pip takes the best version of all indexes. The lock file's hashes decide which files are allowed.
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return variables


def requirement(lock: str, name: str) -> str:
    """Return the lines of a lock file that belong to one package: its version and its hashes."""
    found = re.search(rf"^{re.escape(name)}==.*(?:\n[ \t].*)*", lock, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{name} is not in {LOCK_OF_UV}")
    return found[0] + "\n"


def install_uv() -> None:
    """Install uv by pip, unless this environment has it."""
    if UV.exists():
        return
    lines = requirement(LOCK_OF_UV.read_text(encoding="utf-8"), "uv")
    subprocess.run([*_PIP, "install", "--quiet", "--require-hashes", "-r", "/dev/stdin"], input=lines, text=True, check=True)


def main(arguments: Sequence[str]) -> int:
    """Install what was requested; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locks", type=Path, nargs="+", metavar="LOCK", help="a lock file")
    parser.add_argument("--editable", type=Path, nargs="+", default=[], metavar="PROJECT", help="projects to install as they are, without dependencies")
    parser.add_argument("--python", type=Path, default=sys.executable, help="of the environment to install into (default: this one)")
    given = parser.parse_args(arguments)
    install_uv()
    listed = subprocess.run([*_PIP, "config", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    settings = pip_settings(listed)
    # A variable of uv that is set has precedence over pip's setting.
    variables = {**uv_variables(settings), **os.environ}
    command = [UV, "pip", "install", "--quiet", "--python", given.python]
    command += ["--no-index"] if settings.get("no-index", "").lower() in _YES else []
    locks = [part for lock in given.locks for part in ("-r", lock)]
    subprocess.run([*command, "--require-hashes", *locks], env=variables, check=True)
    projects = [part for project in given.editable for part in ("-e", project)]
    if projects:
        subprocess.run([*command, "--no-deps", "--no-build-isolation", *projects], env=variables, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
