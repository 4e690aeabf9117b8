# Completion of verbs and options in bash, which loads this file at the first TAB. The script comes from the command itself.
# shellcheck shell=bash
eval "$(hortator completion)"
