# Completion of verbs and options in fish, from the output of --help.
function __hortator_verbs
    hortator --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p'
end
function __hortator_options
    set -l typed (commandline -opc)
    hortator $typed[2] --help 2>/dev/null | sed 's/ -- .*//' | grep -oE -- '--[a-z][a-z_-]*' | sort -u
end
complete -c hortator -n 'test (count (commandline -opc)) -eq 1' -f -a '(__hortator_verbs)'
complete -c hortator -n 'test (count (commandline -opc)) -gt 1; and string match -q -- "-*" (commandline -ct)' -f -a '(__hortator_options)'
