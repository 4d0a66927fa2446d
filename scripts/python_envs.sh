#!/usr/bin/env bash
# Makes the Python environments of the tests below .venvs/, each once:
#   tests        pytest and what the tests import
#   hub-<ver>    one unmodified release of huggingface_hub, the real client
# An environment is remade when its list of requirements or its Python has changed.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

hub_versions=(2.4.0 2.0.0 1.31.0)

# The system's Python first: a version manager's shim in PATH costs 0.1 s for each start.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 /usr/local/bin/python3 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  die "the tests need Python 3.10 or newer with its venv module (Debian: python3-venv)"
}

# make_env NAME REQUIREMENT...
make_env() {
  local name=$1 dir=$CAY_ROOT/.venvs/$1 want
  shift
  want="$python $("$python" --version) $*"
  if [[ -f $dir/made-from && $(<"$dir/made-from") == "$want" ]]; then return 0; fi
  announce "setup: Python environment $name"
  rm -rf "$dir"
  quietly "$CAY_ROOT/build/setup/venv-$name.log" "$python" -m venv "$dir"
  quietly "$CAY_ROOT/build/setup/pip-$name.log" \
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --retries 5 "$@"
  printf '%s' "$want" >"$dir/made-from"
}

python=$(find_python)
mapfile -t requirements < <(grep -v '^#' "$CAY_ROOT/tests/requirements.txt")
make_env tests "${requirements[@]}"
for version in "${hub_versions[@]}"; do
  make_env "hub-$version" "huggingface_hub==$version" websockets==17.4
done
