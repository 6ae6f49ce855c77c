#!/bin/bash
# pip leaves a folder of a plugin of pytest behind, and Python still imports it.
#
# A package with a plugin (entry point pytest11) is installed, used by one run of pytest, and uninstalled.
#
# Guess:     pip uninstall removes the package, its byte code, and its folder. If pytest keeps byte code of its own
#            there, PYTEST_DONT_REWRITE in the docstring prevents that.
# Behavior:  pytest changes the assertions of all modules of such a package, and keeps that byte code beside Python's
#            own, as NAME.cpython-311-pytest-7.2.1.pyc, also of a module with PYTEST_DONT_REWRITE. pip does not know
#            these names. The folder stays, with status 0, and "import NAME" still succeeds, with an empty package.
#
# Takes pip 23.0.1 and pytest 7.2.1 of Debian 12 into a temporary folder. Needs Debian 12 with Python 3.11 and apt. Exits
# with 1 if they behave otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq python3-pytest=7.2.1-2 python3-pluggy=1.0.0+repack-1 python3-iniconfig=1.1.1-2 \
    python3-attr=22.2.0-1 python3-packaging=23.0-1 python3-pip-whl=23.0.1+dfsg-1 >/dev/null 2>&1 ||
    { echo "apt-get cannot download pytest 7.2.1 and pip 23.0.1" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" debian; done
unset PYTHONDONTWRITEBYTECODE
export PYTHONPATH=$folder/debian/usr/lib/python3/dist-packages:$folder/installed
pip=$(echo "$PWD"/debian/usr/share/python-wheels/pip-*.whl)/pip

make_wheel() { # docstring
    /usr/bin/python3 - "$1" <<'END'
import sys, zipfile
info = "tidy_plugin-1.0.dist-info/"
files = {"tidy_plugin/__init__.py": '"""A plugin. %s"""\n' % sys.argv[1],
         info + "METADATA": "Metadata-Version: 2.1\nName: tidy-plugin\nVersion: 1.0\n",
         info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "entry_points.txt": "[pytest11]\ntidy = tidy_plugin\n"}
files[info + "RECORD"] = "".join("%s,,\n" % name for name in [*files, info + "RECORD"])
with zipfile.ZipFile("tidy_plugin-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
END
}

try() { # docstring
    rm -rf v
    make_wheel "$1"
    /usr/bin/python3 -m venv --without-pip v
    v/bin/python "$pip" install --quiet --no-index ./tidy_plugin-1.0-py3-none-any.whl 2>/dev/null
    echo 'def test_one(): pass' >test_one.py
    v/bin/python -m pytest --quiet test_one.py >/dev/null
    v/bin/python "$pip" uninstall --quiet --yes tidy-plugin 2>/dev/null
    find v -path '*tidy_plugin*' -type f -printf '%f ' || true
    v/bin/python -c 'import tidy_plugin; print("imported")' 2>/dev/null || echo "gone"
}
plain=$(try "It tests.")
marked=$(try "PYTEST_DONT_REWRITE")
echo "plain: $plain. With PYTEST_DONT_REWRITE: $marked"
left='__init__.cpython-311-pytest-7.2.1.pyc imported'
[ "$plain, $marked" = "$left, $left" ]
