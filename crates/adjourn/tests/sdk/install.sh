#!/usr/bin/env bash
# Installs the official SDKs, in the versions that are pinned here, into a directory.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
into=$1
# They are copied beside what they pin, so that they tell whether it is what they ask for.
pins=(node/package.json node/package-lock.json node/.npmrc python/requirements.txt)

is_installed() {
	local pin
	for pin in "${pins[@]}"; do
		cmp -s "$here/$pin" "$into/$pin" || return 1
	done
	# A virtual environment stops working when the Python that made it goes away.
	"$into/python/bin/python" -c '' 2>/dev/null
}

fail() {
	echo "error: the tests drive adjourn with the official ACP SDKs, and need $1" >&2
	exit 1
}

node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null ||
	fail "Node.js 20 or newer as 'node'"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
	fail "Python 3.10 or newer as 'python3'"
if is_installed; then
	exit 0
fi

npm --version >/dev/null 2>&1 || fail "npm"
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "Python's venv and pip modules"

echo "installing the ACP SDKs that the tests drive adjourn with"
mkdir -p "$(dirname "$into")"
# All or nothing: what is half installed never stands where the tests look.
new=$(mktemp -d "$into.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir "$new/node"
cp "$here"/node/{package.json,package-lock.json,.npmrc} "$new/node/"
(cd "$new/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
python3 -m venv "$new/python"
"$new/python/bin/python" -m pip install --quiet --disable-pip-version-check \
	--no-deps --only-binary :all: -r "$here/python/requirements.txt"
"$new/python/bin/python" -m pip check --quiet
cp "$here/python/requirements.txt" "$new/python/"
rm -rf "$into"
mv "$new" "$into"
