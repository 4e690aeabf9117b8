# The options that the commands share. To be sourced, not executed.
# shellcheck shell=bash disable=SC2034,SC2154  # the files of the set-up share their variables
#
# A command defines `usage`, which prints its help, and may list more flags in `more_flags`: --name sets the variable `name` to 1.

ranks='' gpu=0 prefix='' clean=0
shared_usage="  --ranks N      %s
  --gpu          build for CUDA, in build/gpu: needs the CUDA toolkit, downloads the full LibTorch with its NCCL
  --prefix DIR   also install Hortator into DIR
  --clean        remove the build first (keeps the downloads in .deps)
  --help         print this
"

usage_error() {
  { printf '%s: %s\n\n' "$(basename "$0")" "$1"; usage; } >&2
  exit 2
}

parse_options() {
  local option value
  while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
      --ranks=* | --prefix=*) value=${option#*=} option=${option%%=*} ;;
      --ranks | --prefix)
        [ $# -gt 0 ] || usage_error "$option: expected a value"
        value=$1
        shift
        ;;
    esac
    case $option in
      --help | -h) usage; exit 0 ;;
      --gpu) gpu=1 ;;
      --clean) clean=1 ;;
      --ranks)
        [[ $value =~ ^[1-9][0-9]{0,5}$ ]] || usage_error "--ranks: expected a whole number from 1 to 999999, got '$value'"
        ranks=$value
        ;;
      --prefix)
        [ -n "$value" ] || usage_error "--prefix: expected a folder, got ''"
        case $value in /*) prefix=$value ;; *) prefix=$PWD/$value ;; esac
        ;;
      *)
        [[ " ${more_flags:-} " == *" $option "* ]] || usage_error "Unknown option '$option'"
        option=${option#--}
        printf -v "${option//-/_}" 1
        ;;
    esac
  done
}
