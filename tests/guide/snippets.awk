# awk -v into=FILE: makes one C++ file of all ```cpp blocks of a Markdown page: a function each, with what the page's words take for given
# (prelude.hpp); a block with #include lines is a program of its own. Errors are told by the page's lines.
function open_block() {
  if (lines ~ /(^|\n)#include/) {
    program = lines
    gsub(/#include[^\n]*/, "", program)
    printf "namespace program_%d {\n#line %d \"%s\"\n%s}\n", ++count, start, FILENAME, program > into
  } else {
    printf "void snippet_%d() {\n  using namespace given;\n#line %d \"%s\"\n%s}\n", ++count, start, FILENAME, lines > into
  }
}
/^```cpp$/ { inside = 1; lines = ""; start = FNR + 1; next }
/^```/ && inside { inside = 0; open_block(); next }
inside { lines = lines $0 "\n" }
END { printf "// %d snippets\n", count > into }
