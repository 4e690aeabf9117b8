# awk -v into=FILE: writes all ```cpp blocks of a Markdown page into one C++ file: each block becomes a function that uses the declarations of
# prelude.hpp; a block with #include lines is a program of its own. Compiler errors refer to the lines of the page.
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
