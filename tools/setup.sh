#!/usr/bin/env bash
# Sets up a machine to build Tandem: tools/setup.sh [build|check]
#
# Finds a compiler, CMake, Ninja, six C++ libraries, Python and torch, installs what is missing (Debian packages, and
# torch into a private .venv), and writes what it found to build/setup.env. `check` adds clang-format and clang-tidy.
# A second run with the same inputs prints nothing and starts neither Python nor apt.
#
# Inputs, from the environment, each optional:
#   PYTHON            the interpreter to use, and whose torch to use if it has one
#   TORCH_DIR         a torch package folder, an unpacked libtorch zip, or a virtual environment
#   CXX               the compiler
#   VENV              where the private environment goes (.venv)
#   TANDEM_SETUP_DIR  where setup.env and setup.log go (build)
#
# Exit codes: 2 wrong usage, 4 something about this machine.
set -euo pipefail

readonly torch_wanted=2.13.0 torch_oldest=2.10 python_oldest=3.10 cmake_oldest=3.22
# What the tests compare with, by the name that pip knows and, where it differs, the folder; only ever put into our own environment.
readonly peers=(accelerate ipykernel opencv-python-headless:cv2 pillow:PIL rouge_score safetensors scikit-learn:sklearn scipy tensorboard
  tiktoken tokenizers transformers)
readonly torchvision=torchvision==0.28.0 # apart from these: transformers imports it where it can, and fails if it is not built for this very torch
readonly torch_header=include/torch/csrc/api/include/torch/torch.h
readonly network_signs='Could not resolve|Temporary failure|Unable to fetch|Failed to fetch|No matching distribution|'\
'ConnectionError|Max retries|Network is unreachable|Name or service not known|Could not connect|Connection timed out'

main() {
  mode=${1:-build}
  [[ $# -le 1 && $mode =~ ^(build|check)$ ]] || fail 2 "unknown mode: $*" "tools/setup.sh [build|check]"
  read_inputs
  if record_is_current; then return; fi
  take_lock
  if record_is_current; then return; fi # another run did the work while this one waited

  check_compiler
  check_python
  find_torch
  install_packages
  [[ -n $torch_dir ]] || use_venv
  write_record
}

read_inputs() {
  local script_dir
  script_dir=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
  script=$script_dir/${BASH_SOURCE[0]##*/}
  repo=${script_dir%/*}
  setup_dir=$(absolute "${TANDEM_SETUP_DIR:-$repo/build}")
  record=$setup_dir/setup.env
  log=$setup_dir/setup.log
  venv=$(absolute "${VENV:-$repo/.venv}")
  unfinished=$venv/setup-unfinished # there from the first touch of the venv until pip has ended well
  torch_asked=$(absolute "${TORCH_DIR:-}")
  python_asked=${PYTHON:-python3}
  if [[ $python_asked == */* ]]; then python_asked=$(absolute "$python_asked"); fi
  choose_compiler
  inputs=$(fingerprint)
}

choose_compiler() {
  if [[ -z ${CXX:-} ]]; then
    compiler=("$(type -P c++ || type -P g++ || true)")
  elif type -P "$CXX" >/dev/null; then
    compiler=("$CXX")
  else
    read -ra compiler <<<"$CXX" # CXX="ccache g++" is a custom of make
  fi
}

fingerprint() {
  local python_path
  python_path=$(type -P "$python_asked" || true)
  {
    printf '%s\n' "${PYTHON:-}" "$python_path" "$(readlink -f -- "$python_path")" "$torch_asked" "${CXX:-}" "$venv"
    cat -- "$script"
  } | cksum | tr ' ' -
}

# A record made for `check` serves `build` too.
record_is_current() {
  [[ -f $record && $(recorded SETUP_INPUTS) == "$inputs" && $(recorded SETUP_MODE) =~ ^($mode|check)$ ]] &&
    [[ -x $(recorded PYTHON) && $(torch_version "$(recorded TORCH_DIR)") == "$(recorded TORCH_VERSION)" ]] &&
    type -P "${compiler[0]}" cmake ninja >/dev/null
}

recorded() { (. "$record" && echo "${!1:-}") 2>/dev/null; }

# Several make targets may start a set-up at once.
take_lock() {
  { mkdir -p "$setup_dir" && : >>"$log"; } 2>/dev/null ||
    fail 4 "cannot write into $setup_dir" "free some space, or set TANDEM_SETUP_DIR to another folder"
  if type -P flock >/dev/null; then
    exec 9>"$setup_dir/setup.lock"
    flock 9
  fi
}

check_compiler() {
  local name version
  type -P "${compiler[0]}" >/dev/null || fail 4 "no C++ compiler was found (looked for ${CXX:-c++ and g++})" \
    "sudo apt-get install g++, or set CXX to a compiler"
  read -r name version < <(ask_compiler) || fail 4 "the compiler ${compiler[*]} does not run" "set CXX to one that does"
  case $name in
    gcc) at_least "$version" 11 || fail 4 "GCC $version is too old: 11 or newer is needed" \
      "sudo apt-get install g++-11, then set CXX=g++-11" ;;
    clang) at_least "$version" 14 || fail 4 "Clang $version is too old: 14 or newer is needed" \
      "sudo apt-get install g++, then set CXX=g++" ;;
  esac
}

# Prints "gcc 12" or "clang 14", then the Debian package of each header that the compiler cannot find.
ask_compiler() {
  "${compiler[@]}" -E -P -x c++ - 2>/dev/null <<'EOF'
#ifdef __clang__
clang __clang_major__
#else
gcc __GNUC__
#endif
#if !__has_include(<CLI/CLI.hpp>)
libcli11-dev
#endif
#if !__has_include(<nlohmann/json.hpp>)
nlohmann-json3-dev
#endif
#if !__has_include(<yaml-cpp/yaml.h>)
libyaml-cpp-dev
#endif
#if !__has_include(<jpeglib.h>)
libjpeg-dev
#endif
#if !__has_include(<png.h>)
libpng-dev
#endif
#if !__has_include(<gtest/gtest.h>)
libgtest-dev
#endif
EOF
}

check_python() {
  local version
  type -P "$python_asked" >/dev/null || fail 4 "wrong Python: $python_asked was not found" \
    "sudo apt-get install python3, or set PYTHON to an interpreter"
  { read -r version && IFS= read -r python && IFS= read -r python_torch; } < <(ask_python "$python_asked") ||
    fail 4 "wrong Python: $python_asked does not run" "set PYTHON to an interpreter that does"
  at_least "$version" "$python_oldest" ||
    fail 4 "wrong Python: $python is $version, and $python_oldest or newer is needed" "set PYTHON to a newer one"
}

# Prints the version, the interpreter's own path (pyenv puts a shim on PATH), and the folder of the torch that it would
# import. Importing it would take seconds.
ask_python() {
  "$1" -c '
import sys
print("%d.%d" % sys.version_info[:2])
print(sys.executable)
spec = None
if sys.version_info >= (3, 10):
    from importlib.util import find_spec
    sys.path = [p for p in sys.path if p]  # a folder called torch where we happen to stand is no torch
    spec = find_spec("torch")
print(spec.submodule_search_locations[0] if spec and spec.origin else "")
' 2>/dev/null
}

# Sets torch_dir, or leaves it empty: then the private environment is the answer.
find_torch() {
  torch_dir=
  if [[ -n $torch_asked ]]; then use_torch_asked; else use_torch_of_python; fi
}

# A torch that is asked for by name is used or refused, never replaced.
use_torch_asked() {
  local dir version
  for dir in "$torch_asked"/lib/python3*/site-packages/torch "$torch_asked/torch" "$torch_asked"; do
    if [[ -f $dir/$torch_header ]]; then torch_dir=$(cd "$dir" && pwd); fi
  done
  [[ -n $torch_dir ]] || fail 4 "TORCH_DIR=$torch_asked holds no torch with C++ headers" \
    "name a torch package folder, an unpacked libtorch zip or a virtual environment, or unset TORCH_DIR"
  version=$(torch_version "$torch_dir")
  at_least "$version" "$torch_oldest" ||
    fail 4 "TORCH_DIR=$torch_asked holds torch ${version:-(unknown)}, and $torch_oldest or newer is needed" \
      "name a newer torch, or unset TORCH_DIR"
}

use_torch_of_python() {
  local version instead
  instead="using a private $(short "$venv")"
  version=$(torch_version "$python_torch")
  if [[ $python_torch == "$venv"/* && -e $unfinished ]]; then
    return
  elif [[ -z $python_torch ]]; then
    [[ -z ${PYTHON:-} ]] || say "$python has no torch: $instead"
  elif ! at_least "$version" "$torch_oldest"; then
    say "torch ${version:-(unknown)} of $python is older than $torch_oldest: $instead"
  elif [[ ! -f $python_torch/$torch_header ]]; then
    say "torch $version of $python has no C++ headers: $instead"
  else
    torch_dir=$python_torch
  fi
}

# version.py is the wheel's, build-version the zip's.
torch_version() {
  if [[ -f $1/version.py ]]; then
    sed -n "s/^__version__ = ['\"]\([^'\"]*\).*/\1/p" "$1/version.py"
  elif [[ -f $1/build-version ]]; then
    head -n 1 "$1/build-version"
  fi
}

install_packages() {
  local packages as_root apt
  mapfile -t packages < <(missing_packages)
  ((${#packages[@]})) || return 0
  type -P apt-get >/dev/null || fail 4 "missing, and there is no apt-get to install it: $(things "${packages[@]}")" \
    "install it with this machine's own package manager (headers: where ${compiler[0]} finds them), then run again"
  become_root "${packages[@]}"

  apt=("${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get) # English, for fail_from_log
  : >"$log"
  # One broken third-party source fails the whole update; whether the packages can be had, the install will tell.
  logged "${apt[@]}" update || true
  logged "${apt[@]}" install -y --no-install-recommends "${packages[@]}" || fail_from_log apt-get
  mapfile -t packages < <(missing_packages)
  ((${#packages[@]} == 0)) || fail 4 "still missing after apt-get: $(things "${packages[@]}")" \
    "does something older come first on PATH, or does ${compiler[0]} look elsewhere? (log: $log)"
}

# The things themselves are asked, not dpkg: they may come from anywhere.
missing_packages() {
  at_least "$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')" "$cmake_oldest" || echo cmake
  runs ninja || echo ninja-build
  ask_compiler | grep -e '-dev$' || true
  if [[ $mode == check ]]; then
    runs clang-format || echo clang-format
    runs clang-tidy || echo clang-tidy
  fi
  if [[ -z $torch_dir ]] && ! venv_has_pip; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  fi
}

runs() { "$1" --version >/dev/null 2>&1; }

things() {
  local package name list=
  for package; do
    case $package in
      cmake) name="CMake $cmake_oldest or newer" ;;
      ninja-build) name=Ninja ;;
      libcli11-dev) name="CLI11 headers" ;;
      nlohmann-json3-dev) name="nlohmann-json headers" ;;
      libyaml-cpp-dev) name=yaml-cpp ;;
      libjpeg-dev) name=libjpeg-turbo ;;
      libpng-dev) name=libpng ;;
      libgtest-dev) name=GoogleTest ;;
      python3-venv) name="the venv module of $python" ;;
      *) name=$package ;;
    esac
    list+="${list:+, }$name"
  done
  echo "$list"
}

# Sets as_root, the words to put before a command. The packages are announced before a password is asked for.
become_root() {
  local refusal="no right to install Debian packages, and these are missing: $*"
  local hint="sudo apt-get update && sudo apt-get install -y $*"
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    elif [[ -t 0 ]] && type -P sudo >/dev/null; then
      as_root=(sudo)
    else
      fail 4 "$refusal" "$hint"
    fi
  fi
  say "installing Debian packages: $*"
  [[ ${as_root[*]} != sudo ]] || sudo -v || fail 4 "$refusal" "$hint"
}

use_venv() {
  if ! venv_has_torch; then
    fill_venv
    venv_has_torch || fail 4 "pip ended well but left no torch $torch_wanted in $venv" \
      "remove it and run again (log: $log)"
  fi
}

# Where it has: takes them.
venv_has_torch() {
  local found version peer
  [[ ! -e $unfinished ]] || return 1
  { read -r _ && read -r _ && IFS= read -r found; } < <(ask_python "$venv/bin/python") || return 1
  version=$(torch_version "$found")
  [[ ${version%%+*} == "$torch_wanted" && -f $found/$torch_header ]] || return 1
  for peer in "${peers[@]}"; do [[ -d ${found%/torch}/${peer#*:} ]] || return 1; done
  [[ -d $venv/apart/torchvision ]] || return 1
  python=$venv/bin/python
  torch_dir=$found
}

fill_venv() {
  { mkdir -p "$venv" && [[ -w $venv ]]; } 2>/dev/null ||
    fail 4 "cannot write into $venv" "free some space, or set VENV to another folder"
  check_disk
  say "installing torch $torch_wanted into $(short "$venv") (once, takes minutes; log: $(short "$log"))"
  : >"$log"
  : >"$unfinished"
  if ! venv_has_pip; then
    # What a killed run left would be taken for whole: links to a Python that is gone, half of pip.
    "$venv/bin/python" -c '' 2>/dev/null || rm -f "$venv"/bin/python*
    rm -rf "$venv"/lib/python3*/site-packages/pip{,-*}
    logged "$python" -m venv "$venv" || fail_from_log "python -m venv"
  fi
  logged "$venv/bin/python" -m pip install "torch==$torch_wanted" numpy "${peers[@]%:*}" || fail_from_log pip
  logged "$venv/bin/python" -m pip install --no-deps --upgrade --target "$venv/apart" "$torchvision" || fail_from_log pip
  rm "$unfinished"
}

check_disk() {
  local free
  free=$(df -k --output=avail "$venv" 2>/dev/null | tail -n 1) || return 0 # a df that cannot tell is no reason to stop
  ((free >= 2 * 1024 * 1024)) || fail 4 "the disk of $venv has $((free / 1024)) MB free, and torch needs 2048 MB" \
    "free some space, or set VENV to a folder on another disk"
}

venv_has_pip() { "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

write_record() {
  trap 'rm -f "$record.$$"' EXIT
  {
    printf '%s=%s\n' PYTHON "$(quoted "$python")" TORCH_DIR "$(quoted "$torch_dir")" \
      TORCH_VERSION "$(torch_version "$torch_dir")" SETUP_MODE "$mode" SETUP_INPUTS "$inputs" >"$record.$$" &&
      mv -f "$record.$$" "$record"
  } 2>/dev/null || fail 4 "cannot write $record" "free some space, or set TANDEM_SETUP_DIR to another folder"
}

# Plain where it can be; the record is sourced by any sh, so bash's printf %q will not do.
quoted() {
  if [[ $1 == *[!A-Za-z0-9_@%+:,./-]* ]]; then
    printf "'%s'\n" "$(sed "s/'/'\\\\''/g" <<<"$1")"
  else
    echo "$1"
  fi
}

say() { echo "setup: $*" >&2; }

fail() { # exit code, sentence, hint
  say "$2"
  echo "hint: $3" >&2
  exit "$1"
}

logged() { "$@" >>"$log" 2>&1 </dev/null; }

fail_from_log() { # the program that failed
  if grep -q 'No space left on device' "$log"; then
    fail 4 "the disk is full: $1 could not finish" "free some space and run again (log: $log)"
  elif grep -q 'Could not get lock' "$log"; then
    fail 4 "another program is installing packages: $1 could not get the lock" "wait for it and run again (log: $log)"
  elif grep -qE "$network_signs" "$log"; then
    fail 4 "no network: $1 could not fetch what is missing" \
      "check the network and where $1 looks for packages, then run again (log: $log)"
  fi
  fail 4 "$1 failed" "$(grep . "$log" | tail -n 1) (log: $log)"
}

absolute() { if [[ -z $1 || $1 == /* ]]; then echo "$1"; else echo "$PWD/$1"; fi; }

short() { echo "${1#"$repo/"}"; }

# Compares major.minor as numbers; what follows the digits (+cpu, a0, rc1) does not count.
at_least() { # have, want
  local have want
  IFS=. read -ra have <<<"${1%%[!0-9.]*}"
  IFS=. read -ra want <<<"$2"
  local have_major=${have[0]:-0} have_minor=${have[1]:-0} want_major=${want[0]} want_minor=${want[1]:-0}
  ((have_major > want_major || (have_major == want_major && have_minor >= want_minor)))
}

# Without it, a Ctrl-C that pip turns into an exit code would be reported as a failure of pip.
trap 'exit 130' INT
main "$@"
