#!/usr/bin/env bash
# Installs the clients that the tests drive adjourn with, in the versions that are pinned here, into a
# directory: the official SDKs of ACP, the Python SDK's example clients, and acpx; the official SDKs of
# A2A 0.3 and 1.0 in Python and JavaScript. With --acp-cli also acp-cli, which has to be compiled.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
into=$1
acp_cli=0.3.1
# They are copied beside what they pin, so that they tell whether it is what they ask for.
pins=(node/package.json node/package-lock.json node/.npmrc
	python/requirements.txt python/examples.sha256
	a2a/requirements-0.3.txt a2a/requirements-1.0.txt
	a2a/node/package.json a2a/node/package-lock.json a2a/node/.npmrc)

is_installed() {
	local pin python
	for pin in "${pins[@]}"; do
		cmp -s "$here/$pin" "$into/$pin" || return 1
	done
	# A virtual environment stops working when the Python that made it goes away.
	for python in python a2a/0.3 a2a/1.0; do
		"$into/$python/bin/python" -c '' 2>/dev/null || return 1
	done
}

fail() {
	echo "error: the tests drive adjourn with clients, and need $1" >&2
	exit 1
}

if [ "${2:-}" = --acp-cli ]; then
	# cargo knows what it has installed there, and does nothing if it is this version.
	exec cargo install --locked --quiet --version "=$acp_cli" --root "$into/acp-cli" \
		--target-dir "$into/acp-cli-target" acp-cli
fi

node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null ||
	fail "Node.js 20 or newer as 'node'"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
	fail "Python 3.10 or newer as 'python3'"
if is_installed; then
	exit 0
fi

npm --version >/dev/null 2>&1 || fail "npm"
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "Python's venv and pip modules"

echo "installing the clients that the tests drive adjourn with"
mkdir -p "$(dirname "$into")"
# All or nothing: what is half installed never stands where the tests look.
new=$(mktemp -d "$into.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir "$new/node"
cp "$here"/node/{package.json,package-lock.json,.npmrc} "$new/node/"
# Not `npm ci`: acpx names packages for other platforms that its registry does not have.
(cd "$new/node" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error)
# acpx runs on the Node.js that is installed with it; there is none for every platform.
ls "$new"/node/node_modules/node-linux-*/bin/node >/dev/null 2>&1 ||
	node -e 'process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)' ||
	fail "Node.js 22 or newer as 'node', for acpx"
python3 -m venv "$new/python"
"$new/python/bin/python" -m pip install --quiet --disable-pip-version-check \
	--no-deps --only-binary :all: -r "$here/python/requirements.txt"
"$new/python/bin/python" -m pip check --quiet
# The example clients are only in the SDK's source archive.
sdk=$(grep '^agent-client-protocol==' "$here/python/requirements.txt")
"$new/python/bin/python" -m pip download --quiet --disable-pip-version-check \
	--no-deps --no-binary agent-client-protocol --dest "$new/python" "$sdk"
(cd "$new/python" && sha256sum --check --quiet "$here/python/examples.sha256")
tar --extract --gzip --file "$new"/python/agent_client_protocol-*.tar.gz \
	--directory "$new/python" --strip-components 1 --wildcards '*/examples/*'
rm "$new"/python/agent_client_protocol-*.tar.gz
cp "$here"/python/{requirements.txt,examples.sha256} "$new/python/"
mkdir -p "$new/a2a/node"
cp "$here"/a2a/node/{package.json,package-lock.json,.npmrc} "$new/a2a/node/"
(cd "$new/a2a/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
for version in 0.3 1.0; do
	python3 -m venv "$new/a2a/$version"
	"$new/a2a/$version/bin/python" -m pip install --quiet --disable-pip-version-check \
		--no-deps --only-binary :all: -r "$here/a2a/requirements-$version.txt"
	"$new/a2a/$version/bin/python" -m pip check --quiet
	cp "$here/a2a/requirements-$version.txt" "$new/a2a/"
done
rm -rf "$into"
mv "$new" "$into"
