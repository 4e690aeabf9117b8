# Finds LibTorch, in the order of share/cmake/find_libtorch.cmake, or downloads the pinned wheels. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables

libtorch=$deps/libtorch

# The sets of wheels in libtorch.txt that the build needs, and those that only programs on GPUs need, which are downloaded beside the build.
choose_wheels() {
  build_wheels=(cpu) run_wheels=()
  if [ "$gpu" = 1 ]; then build_wheels+=(gpu) run_wheels+=(gpu_run); fi
}

# pinned_wheels SET...: prints these wheels as "bytes sha256 file".
pinned_wheels() {
  awk -v arch="$(uname -m)" -v sets=" $* " '$1 !~ /^#/ && $2 == arch && index(sets, " " $1 " ") { print $3, $4, $5 }' "$root/share/setup/libtorch.txt"
}

# Prints the libraries in a wheel's record as "bytes path". Records may have DOS line ends.
recorded_libraries() { tr -d '\r' <"$1" | awk -F, '$1 ~ /\.so(\.[0-9]+)*$/ { print $3, $1 }'; }

# Whether the wheel is completely unpacked: its record, which is written last, is there, and every library has the recorded size.
wheel_is_whole() {
  local name version record
  IFS=- read -r name version _ <<<"$1"
  record=$name-$version.dist-info/RECORD
  cd "$libtorch" 2>/dev/null && [ -s "$record" ] &&
    [ "$(recorded_libraries "$record")" = "$(recorded_libraries "$record" | cut -d ' ' -f 2 | xargs -r stat -c '%s %n' 2>/dev/null)" ]
}

# missing_wheels SET...: prints those that are not completely unpacked
missing_wheels() {
  local bytes digest wheel
  while read -r bytes digest wheel; do
    (wheel_is_whole "$wheel") || echo "$bytes $digest $wheel"
  done < <(pinned_wheels "$@")
}

# Prints the wheels that programs on GPUs need and that are missing, unless the LibTorch is the user's.
missing_run_wheels() {
  if [ -z "$found_libtorch" ] || [ "$(cut -f 2 <<<"$found_libtorch")" = "$libtorch/torch" ]; then missing_wheels "${run_wheels[@]}"; fi
}

# download_wheels NAME SET...: downloads what is missing of them. The lock serialises two set-ups in one tree.
download_wheels() {
  mkdir -p "$deps"
  (flock 9 && missing_wheels "${@:2}" | python3 "$root/share/setup/wheels.py" "$libtorch" "$1") 9>"$deps/lock"
}

# Sets `found_libtorch` to "source<TAB>torch folder<TAB>version" of the LibTorch that CMake will use. Empty if it must be downloaded, which
# includes an incomplete .deps/libtorch. Exits if the user named a folder without LibTorch.
look_for_libtorch() {
  local named=${LIBTORCH:-}${Torch_DIR:-} search=(cmake -P "$root/share/cmake/find_libtorch.cmake")
  if ! command -v cmake >/dev/null; then
    found_libtorch=$named  # checked again once CMake is installed
  elif [ -n "$named" ]; then
    found_libtorch=$("${search[@]}") || exit 1
  else
    found_libtorch=$("${search[@]}" 2>/dev/null) || found_libtorch=''
  fi
  if [ -z "$found_libtorch" ] || [ "$(cut -f 2 <<<"$found_libtorch")" = "$libtorch/torch" ]; then
    [ -z "$(missing_wheels "${build_wheels[@]}")" ] || found_libtorch=''
  fi
}

# Starts to download LibTorch beside the installation of packages, if it is certain that it will be needed: until CMake is installed, that is where
# the user has named no LibTorch, and there was no Python that may have one.
begin_libtorch() {
  if [ -n "$found_libtorch" ] || [ -n "${CMAKE_PREFIX_PATH:-}" ] || ! have_download || [ -z "$(pinned_wheels cpu)" ]; then return 0; fi
  if ! command -v cmake >/dev/null && python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then return 0; fi
  begin download_wheels LibTorch "${build_wheels[@]}"
  libtorch_download=$!
}

libtorch_download=''
ensure_libtorch() {
  if [ -z "$found_libtorch" ]; then
    [ -n "$(pinned_wheels cpu)" ] || fail "No LibTorch to download for '$(uname -m)': only x86_64 and aarch64 have wheels. Set LIBTORCH to the torch folder of your own LibTorch"
    if [ -n "$libtorch_download" ]; then
      wait "$libtorch_download" || exit
    else
      download_wheels LibTorch "${build_wheels[@]}" || exit
    fi
    look_for_libtorch
    [ -n "$found_libtorch" ] || fail "CMake does not find LibTorch in '$libtorch', where it was unpacked. Remove that folder and run the same command again"
  fi
  local source folder version
  IFS=$'\t' read -r source folder version <<<"$found_libtorch"
  [ "$gpu" = 0 ] || [ -e "$folder/lib/libtorch_cuda.so" ] ||
    fail "--gpu: the LibTorch found through $source, '$folder', has no CUDA. Name one that has, or unset it so that set-up downloads one"
  log "LibTorch $version, found through $source: $folder"
}
