#include <hortator/error.hpp>
#include <hortator/training/logger.hpp>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

using namespace hortator;

namespace {

/// Captures the output of this process.
template <typename Work>
std::string output_of(const Work& work) {
  return test::written_to(STDERR_FILENO, work);
}

}  // namespace

TEST_CASE("a logger writes on the main process, on all processes, or in order") {
  const State state;
  const auto logger = get_logger(state, "train");
  const auto once = output_of([&] { logger.info("epoch ", 3); });
  if (state.is_main_process()) {
    CHECK_THAT(once, ContainsSubstring("train: epoch 3\n"));
  } else {
    CHECK(once.empty());
  }
  const auto everywhere = output_of([&] { logger.everywhere().warning("here"); });
  CHECK_THAT(everywhere, ContainsSubstring(text::concat('[', state.process_index(), '/')));
  CHECK_THAT(everywhere, ContainsSubstring("warning: train: here\n"));
  CHECK_THAT(output_of([&] { logger.in_order().error("mine"); }), ContainsSubstring("error: train: mine\n"));
  const auto twice = output_of([&] {
    for (int i = 0; i < 3; ++i) logger.everywhere().warning_once("again");
  });
  CHECK(twice.find("again") == twice.rfind("again"));
}

TEST_CASE("a rank that has logged alone still takes part when all log in turn") {
  const State state;
  const auto logger = get_logger(state, "train");
  const auto all = output_of([&] {
    if (state.is_last_process()) logger.everywhere().warning_once("once");
    for (int i = 0; i < 2; ++i) logger.in_order().warning_once("once");
  });
  std::size_t lines = 0;
  for (auto at = all.find("once"); at != std::string::npos; at = all.find("once", at + 1)) ++lines;
  CHECK(lines == (state.is_last_process() ? 2U : 1U));
  state.wait_for_everyone();
}

TEST_CASE("the level comes from the call or from the environment") {
  const State state;
  CHECK_FALSE(get_logger(state, "").is_enabled_for(LogLevel::debug));
  CHECK(get_logger(state, "").is_enabled_for(LogLevel::info));
  setenv("ACCELERATE_LOG_LEVEL", "ERROR", 1);
  CHECK_FALSE(get_logger(state, "").is_enabled_for(LogLevel::warning));
  for (const auto* word : {"WARN", "fatal", "NOTSET"}) {  // further names of Python's logging
    setenv("ACCELERATE_LOG_LEVEL", word, 1);
    CHECK(get_logger(state, "").is_enabled_for(LogLevel::critical));
    CHECK(get_logger(state, "").is_enabled_for(LogLevel::debug) == (std::string(word) == "NOTSET"));
  }
  setenv("HORTATOR_LOG_LEVEL", "Debug", 1);
  const auto logger = get_logger(state, "");
  CHECK(logger.is_enabled_for(LogLevel::debug));
  CHECK_FALSE(get_logger(state, "", LogLevel::error).is_enabled_for(LogLevel::info));
  CHECK(output_of([&] { get_logger(state, "", LogLevel::error).everywhere().info("unheard"); }).empty());
  CHECK(output_of([&] { get_logger(state, "", LogLevel::error).in_order().info("unheard"); }).empty());
  setenv("HORTATOR_LOG_LEVEL", "Warning", 1);
  CHECK(output_of([&] { log::info("unheard"); }).empty());
  CHECK_THAT(output_of([&] { log::warn("heard"); }), ContainsSubstring("heard"));
  setenv("HORTATOR_LOG_LEVEL", "error", 1);
  CHECK(output_of([&] { log::warn("unheard"); }).empty());
  setenv("HORTATOR_LOG_LEVEL", "loud", 1);
  CHECK_THROWS_WITH(get_logger(state, ""), ContainsSubstring("HORTATOR_LOG_LEVEL: unknown level 'loud'") &&
                                               ContainsSubstring("debug, info, warning, error, critical"));
  CHECK_THROWS_WITH(State(), ContainsSubstring("unknown level 'loud'"));
  unsetenv("HORTATOR_LOG_LEVEL");
  unsetenv("ACCELERATE_LOG_LEVEL");
}
