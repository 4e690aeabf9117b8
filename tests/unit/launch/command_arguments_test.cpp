#include "launch/command_arguments.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;
using Arguments = std::vector<std::string>;

TEST_CASE("a command is taken apart as a shell does it, without anything else that a shell does") {
  const auto of = [](const char* command) { return command_arguments("--on-checkpoint", command); };
  CHECK(of("rsync -a {} host:backup") == Arguments{"rsync", "-a", "{}", "host:backup"});
  CHECK(of("  cp\t-r  {}\n") == Arguments{"cp", "-r", "{}"});
  CHECK(of(R"('my program' "two arguments" a\ b 'it''s' "")") ==
        Arguments{"my program", "two arguments", "a b", "its", ""});
  CHECK(of(R"(p 'a\b' "a\"b")") == Arguments{"p", "a\\b", "a\"b"});
  CHECK(of("echo $(id) `id` $HOME * ; rm > x & | y") ==
        Arguments{"echo", "$(id)", "`id`", "$HOME", "*", ";", "rm", ">", "x", "&", "|", "y"});
}

TEST_CASE("a command that is empty or not closed is refused with the name of its setting") {
  for (const auto* command : {"", "  ", "'' x", "a 'b", "a \"b", "a \\"}) {
    INFO(command);
    CHECK_THROWS_WITH(command_arguments("--on-checkpoint", command), Catch::Contains("--on-checkpoint: "));
  }
}

TEST_CASE("a folder stays one argument of the command, whatever its name") {
  const std::string folder = "/runs/a b; rm -rf $(x) '{}' \"*";
  CHECK(with_file({"cp", "{}", "to={}/{}"}, folder) == Arguments{"cp", folder, "to=" + folder + "/" + folder});
  CHECK(with_file({"archive", "-v"}, folder) == Arguments{"archive", "-v", folder});
}
