#include "launch/job/quote.hpp"

#include <array>
#include <cstdio>
#include <memory>

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

std::string shell_output(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 4096> buffer{};
  return {buffer.data(), std::fread(buffer.data(), 1, buffer.size(), pipe.get())};
}

}  // namespace

TEST_CASE("plain arguments stay unchanged, all others are quoted") {
  CHECK(shell_quote("./train") == "./train");
  CHECK(shell_quote("--lr=1e-3") == "--lr=1e-3");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
  CHECK(shell_quote("$HOME") == "'$HOME'");
  CHECK(shell_quote("*") == "'*'");
  CHECK(shell_quote("~") == "'~'");
  CHECK(shell_line(std::array<std::string, 3>{"echo", "a b", "c"}) == "echo 'a b' c");
}

TEST_CASE("a shell reads back quoted text exactly, for every character") {
  for (int code = 1; code < 256; ++code) {
    const std::string argument = std::string("x") + static_cast<char>(code) + "'y";
    CHECK(shell_output("printf %s " + shell_quote(argument)) == argument);
  }
}
