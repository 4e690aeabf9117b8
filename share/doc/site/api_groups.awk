# Doxygen's input filter: puts what a public header declares into a group (groups.dox), chosen by the header's path. Lines keep their numbers.
function group(file) {
  if (file ~ /\/(checkpoint|training\/(state_dict|state_hook))\.hpp$/) return "checkpoints"
  if (file ~ /\/(tracker|training\/(logger|progress|profile))\.hpp$/) return "observing"
  if (file ~ /\/(run|launch|state|error|export)\.hpp$/) return "programs"
  if (file ~ /\/(data\.hpp|datasets\.hpp|datasets\/)/) return "data"
  if (file ~ /\/parallel\//) return "parallel"
  if (file ~ /\/(bigmodel\/|training\/answers\.hpp)/) return "bigmodel"
  if (file ~ /\/interop\//) return "interop"
  return "training"
}
{ gsub(/<program>/, "PROGRAM") }  # which Doxygen takes for HTML
/^namespace hortator \{$/ { print $0 " /** @addtogroup " group(FILENAME) " */ /** @{ */"; next }
/^\}  \/\/ namespace hortator$/ { print "/** @} */ " $0; next }
{ print }
