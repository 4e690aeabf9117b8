# LibTorch: the first one found wins (share/cmake/find_libtorch.cmake knows the order), else the pinned wheels. Sourced, never run.
# shellcheck shell=bash disable=SC2034,SC2154  # one program in several files: the names of one are used in others

libtorch=$deps/libtorch

# What of the pinned LibTorch is wanted: with its CUDA libraries for --gpu, and for tests wherever a toolkit can build that side.
choose_wheels() {
  wheels_for_cuda=$gpu
  if [ "${1:-}" = tests ] && [ -z "${HORTATOR_NO_INSTALL:-}" ] && version_at_least 13.0 "$(toolkit_version)"; then wheels_for_cuda=1; fi
}

# The pinned wheels that this build needs: "bytes sha256 file"
pinned_wheels() {
  awk -v arch="$(uname -m)" -v cuda="$wheels_for_cuda" '$1 !~ /^#/ && $2 == arch && ($1 == "cpu" || cuda) { print $3, $4, $5 }' \
    "$root/share/setup/libtorch.txt"
}

# The libraries in a wheel's record as "bytes path"; records may have DOS line ends.
recorded_libraries() { tr -d '\r' <"$1" | awk -F, '$1 ~ /\.so(\.[0-9]+)*$/ { print $3, $1 }'; }

# Unpacked to the end (the record is written last), and every library as long as the record says.
wheel_is_whole() {
  local name version record
  IFS=- read -r name version _ <<<"$1"
  record=$name-$version.dist-info/RECORD
  cd "$libtorch" 2>/dev/null && [ -s "$record" ] &&
    [ "$(recorded_libraries "$record")" = "$(recorded_libraries "$record" | cut -d ' ' -f 2 | xargs -r stat -c '%s %n' 2>/dev/null)" ]
}

missing_wheels() {
  local bytes digest wheel
  while read -r bytes digest wheel; do
    (wheel_is_whole "$wheel") || echo "$bytes $digest $wheel"
  done < <(pinned_wheels)
}

# Sets `found_libtorch` to "source<TAB>torch folder<TAB>version" of what CMake will take. It stays empty where we must download,
# which a folder of ours that is not whole also means; a place that the user named and that has none is an error.
look_for_libtorch() {
  local named=${LIBTORCH:-}${Torch_DIR:-} search=(cmake -P "$root/share/cmake/find_libtorch.cmake")
  if ! command -v cmake >/dev/null; then
    found_libtorch=$named  # it is looked at once CMake is here
  elif [ -n "$named" ]; then
    found_libtorch=$("${search[@]}") || exit 1
  else
    found_libtorch=$("${search[@]}" 2>/dev/null) || found_libtorch=''
  fi
  if [ -z "$found_libtorch" ] || [ "$(cut -f 2 <<<"$found_libtorch")" = "$libtorch/torch" ]; then
    [ -z "$(missing_wheels)" ] || found_libtorch=''
  fi
}

ensure_libtorch() {
  if [ -z "$found_libtorch" ]; then
    [ -n "$(pinned_wheels)" ] || fail "no LibTorch is pinned for $(uname -m) (only x86_64 and aarch64 have wheels). set LIBTORCH to the torch folder of one that you have"
    # two set-ups in one tree take turns
    mkdir -p "$deps"
    (flock 9 && missing_wheels | python3 "$root/share/setup/wheels.py" "$libtorch") 9>"$deps/lock" || exit
    look_for_libtorch
    [ -n "$found_libtorch" ] || fail "LibTorch lies in $libtorch, but CMake does not find it there. remove that folder and run the same command again"
  fi
  local source folder version
  IFS=$'\t' read -r source folder version <<<"$found_libtorch"
  [ "$gpu" = 0 ] || [ -e "$folder/lib/libtorch_cuda.so" ] ||
    fail "--gpu needs a LibTorch with CUDA (the one found through $source, $folder, has none). take another, or let set-up download one"
  say "LibTorch $version, found through $source: $folder"
}
