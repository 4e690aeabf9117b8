#include "prelude.hpp"
// All blocks of the guide.
#include "snippets.inc"
