# awk -v into=FILE PAGE...: writes all C++ blocks of Markdown pages into one C++ file. A block becomes a function that uses the declarations of
# prelude.hpp; a block with #include lines is a program of its own, and a ```diff block is two: before and after. Compiler errors refer to the
# lines of the pages.
function program(text) {
  gsub(/#include[^\n]*/, "", text)
  printf "namespace program_%d {\n#line %d \"%s\"\n%s}\n", ++count, start, FILENAME, text > into
}
function close_block() {
  if (kind == "diff") {
    program(before)
    program(after)
  } else if (lines ~ /(^|\n)#include/) {
    program(lines)
  } else {
    printf "void snippet_%d() {\n  using namespace given;\n#line %d \"%s\"\n%s}\n", ++count, start, FILENAME, lines > into
  }
}
/^```(cpp|diff)( |$)/ { inside = 1; kind = /^```diff/ ? "diff" : "cpp"; lines = before = after = ""; start = FNR + 1; next }
/^```/ && inside { inside = 0; close_block(); next }
inside {
  lines = lines $0 "\n"
  sign = substr($0, 1, 1)
  before = before (sign == "+" ? "" : substr($0, 2)) "\n"
  after = after (sign == "-" ? "" : substr($0, 2)) "\n"
}
END { printf "// %d snippets\n", count > into }
