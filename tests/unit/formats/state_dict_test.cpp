#include <ATen/ATen.h>

#include <hortator/training/state_dict.hpp>
#include <limits>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("values of all types are returned in the type that was put") {
  StateDict state;
  state.put("bool", true);
  state.put("int", -3);
  state.put("big", std::numeric_limits<std::uint64_t>::max() - 1);
  state.put("float", 0.5F);
  state.put("text", "words");
  state.put("tensor", at::arange(3));
  CHECK(state.get<bool>("bool"));
  CHECK(state.get<int>("int") == -3);
  CHECK(state.get<std::int8_t>("int") == -3);
  CHECK(state.get<std::uint64_t>("big") == std::numeric_limits<std::uint64_t>::max() - 1);
  CHECK(state.get<float>("float") == 0.5F);
  CHECK(state.get<double>("float") == 0.5);
  CHECK(state.get<std::string>("text") == "words");
  CHECK(state.get<at::Tensor>("tensor").equal(at::arange(3)));
  CHECK(state.contains("int"));
  CHECK_FALSE(state.contains("in"));
}

TEST_CASE("putting a name again replaces its value, also by one of another type") {
  StateDict state;
  state.put("a", 1);
  state.put("a", "one");
  CHECK(state.values().size() == 1);
  CHECK(state.get<std::string>("a") == "one");
}

TEST_CASE("errors name an entry that is missing, of another type or too large") {
  StateDict state;
  CHECK_THROWS_WITH(state.get<int>("steps"), ContainsSubstring("no entry 'steps'") && ContainsSubstring("it is empty"));
  state.put("steps", 70000);
  state.put("rate", 0.1);
  CHECK_THROWS_WITH(state.get<int>("step"),
                    ContainsSubstring("no entry 'step'") && ContainsSubstring("did you mean 'steps'"));
  CHECK_THROWS_WITH(state.get<double>("steps"),
                    ContainsSubstring("'steps' of the state is a whole number, not a real number"));
  CHECK_THROWS_WITH(state.get<int>("rate"),
                    ContainsSubstring("'rate' of the state is a real number, not a whole number"));
  CHECK_THROWS_WITH(state.get<at::Tensor>("rate"), ContainsSubstring("not a tensor"));
  CHECK_THROWS_WITH(state.get<std::string>("rate"), ContainsSubstring("not text"));
  CHECK_THROWS_WITH(state.get<std::int16_t>("steps"),
                    ContainsSubstring("is 70000") && ContainsSubstring("ends at 32767"));
  CHECK_THROWS_WITH(state.get<bool>("steps"), ContainsSubstring("ends at 1"));
  CHECK_THROWS_AS(state.get<int>("steps_"), Error);
}

TEST_CASE("values that cannot be saved cannot be put") {
  StateDict state;
  CHECK_THROWS_WITH(state.put("momentum", at::Tensor()), ContainsSubstring("'momentum' is undefined"));
  CHECK_THROWS_AS(state.put("", 1), UsageError);
  CHECK(state.empty());
}

TEST_CASE("parts are put and read under a prefix") {
  StateDict part;
  part.put("weight", 1);
  part.put("deep/bias", 2);
  StateDict whole;
  whole.put_all("models/0", part);
  whole.put_all("models/01", part);
  whole.put("models/0-not", 3);
  CHECK(whole.values().size() == 5);
  CHECK(whole.get<int>("models/0/deep/bias") == 2);
  const auto back = whole.under("models/0");
  CHECK(back.values().size() == 2);
  CHECK(back.get<int>("weight") == 1);
  CHECK(back.get<int>("deep/bias") == 2);
  const auto models = whole.under("models");
  CHECK(models.values().size() == 5);
  CHECK(whole.under("nothing").empty());
}
