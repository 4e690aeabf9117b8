#include "prelude.hpp"
// All C++ blocks of the guide.
#include "snippets.inc"
