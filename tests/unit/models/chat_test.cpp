// Chat templates against Jinja, on stored cases that chat_oracle.py wrote.
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using models::ChatTemplate;
using nlohmann::ordered_json;

namespace {

// The text of the template, or its error.
std::string outcome_of(const std::string& source) {
  try {
    return ChatTemplate::from_text(source).render({{"user", "x"}});
  } catch (const Error& error) {
    return error.what();
  }
}

const std::map<std::string, std::string> tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

}  // namespace

TEST_CASE("conversations become the texts that Jinja makes of them") {
  const auto cases = ordered_json::parse(test::content_of(CHAT_CASES));
  CHECK(cases.size() > 50);
  for (const auto& one : cases) {
    INFO(one.dump(2));
    const auto chat = ChatTemplate::from_text(one.at("template").get<std::string>(), tokens);
    const auto messages = one.at("messages").dump();
    const bool prompts = one.at("add_generation_prompt");
    if (one.contains("error")) {
      CHECK_THROWS_AS(chat.render_json(messages, prompts), UsageError);
    } else {
      CHECK(chat.render_json(messages, prompts) == one.at("text").get<std::string>());
    }
  }
}

TEST_CASE("tuples print as Python prints them") {
  CHECK(outcome_of("{{ (1, 2) }}") == "(1, 2)");
  CHECK(outcome_of("{{ ('a',) }}") == "('a',)");
  CHECK(outcome_of("{% set x = 1, 2, 3 %}{{ x }}{{ x[1:] }}{{ x + (4,) }}") == "(1, 2, 3)(2, 3)(1, 2, 3, 4)");
  CHECK(outcome_of("{% set x = (1, 2) %}{{ x[0] }}{{ x | length }}{{ x | list }}") == "12[1, 2]");
  CHECK(outcome_of("{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}") == "37");
  CHECK_THAT(outcome_of("{{ [1] + (2,) }}"), ContainsSubstring("a list and a tuple"));
}

TEST_CASE("white space is what Python takes for it, and filters compare as Jinja does") {
  CHECK(outcome_of("{{ '\u3000 x\u00a0y \u2003' | trim }}") == "x\u00a0y");
  CHECK(outcome_of("{{ '\u3000x\u00a0'.strip() }}{{ '\u00a0x'.rstrip() }}") == "x\u00a0x");
  CHECK(outcome_of("{{ ' a\u3000b\u00a0 c '.split() }}") == "['a', 'b', 'c']");
  CHECK(outcome_of("{{ ' a b  c '.split(none, 1) }}") == "['a', 'b  c ']");
  CHECK(outcome_of("{{ ['b', 'C', 'a'] | sort }}{{ ['a', 'A', 'b'] | unique | list }}") == "['a', 'b', 'C']['a', 'b']");
  CHECK_THAT(outcome_of("{{ [1, 2] | sort(reverse=true) }}"), ContainsSubstring("without arguments only"));
  CHECK_THAT(outcome_of("{{ [1, 2] | unique(attribute='x') }}"), ContainsSubstring("without arguments only"));
}

TEST_CASE("a template that refuses the messages says why") {
  CHECK_THAT(outcome_of("{{ raise_exception('no system role') }}"), ContainsSubstring("no system role"));
}

TEST_CASE("what is not supported is named, with its line") {
  CHECK_THAT(outcome_of("a\n{% include 'b' %}"), ContainsSubstring("line 2: the statement 'include'"));
  CHECK_THAT(outcome_of("{{ 1 | pprint }}"), ContainsSubstring("the filter 'pprint' is not supported; there are"));
  CHECK_THAT(outcome_of("{{ 1 is filter }}"), ContainsSubstring("the test 'filter'"));
  CHECK_THAT(outcome_of("\n{{ cycler(1) }}"), ContainsSubstring("line 2: what is called is not a function"));
  CHECK_THAT(outcome_of("{% if true %}"), ContainsSubstring("'endif' is missing"));
  CHECK_THAT(outcome_of("{{ (1 }}"), ContainsSubstring("line 1"));
  CHECK_THAT(outcome_of("{{ 'open }}"), ContainsSubstring("the string does not end"));
  CHECK_THAT(outcome_of("{{ 1 / 0 }}"), ContainsSubstring("Division by zero"));
  CHECK_THAT(outcome_of("{{ '\xFF' | tojson }}"), ContainsSubstring("not valid UTF-8"));
  CHECK_THAT(outcome_of("{{ 'x'.strip('\u00E9') }}"), ContainsSubstring("ASCII only"));
}

TEST_CASE("what Jinja does in its own order") {
  CHECK(outcome_of("{{ dict(b='c', a=1) }}") == "{'b': 'c', 'a': 1}");
  CHECK(outcome_of("{{ dict({'a': 1}, b=2) }}") == "{'a': 1, 'b': 2}");
  CHECK(outcome_of("{{ -1 | abs }}") == "1");
  CHECK(outcome_of("{{ 9007199254740993 | int }}") == "9007199254740993");
  CHECK_THAT(outcome_of("{{ 100000000000000000000.0 | int }}"), ContainsSubstring("too large"));
  CHECK_THAT(outcome_of("{{ [1] | tojson(separators=(',', ':')) }}"),
             ContainsSubstring("'separators' is not supported"));
  CHECK(outcome_of("{{ [1] | tojson(indent=2) }}") == "[\n  1\n]");
}

TEST_CASE("a hostile template ends") {
  CHECK_THAT(
      outcome_of("{% for a in range(99999) %}{% for b in range(99999) %}{% set c = 1 %}{% endfor %}{% endfor %}"),
      ContainsSubstring("does not come to an end"));
  CHECK_THAT(outcome_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), ContainsSubstring("too deeply"));
  CHECK_THAT(outcome_of("{{ " + std::string(50'000, '(') + "1" + std::string(50'000, ')') + " }}"),
             ContainsSubstring("too deeply"));
  std::string chain = "1";
  for (int i = 0; i < 50'000; ++i) chain += "+1";
  CHECK_THAT(outcome_of("{{ " + chain + " }}"), ContainsSubstring("too long"));
  CHECK_THAT(
      outcome_of("{% set n = namespace(x='abc') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"),
      ContainsSubstring("without bound"));
  CHECK_THAT(outcome_of("{% set n = namespace(x=1) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"),
             ContainsSubstring("nested too deeply"));
  std::string nested;
  for (int i = 0; i < 10'000; ++i) nested += "{% if 1 %}";
  CHECK_THAT(outcome_of(nested), ContainsSubstring("too deeply"));
}

TEST_CASE("the template of a folder is found") {
  const test::OwnFolder folder("chat");
  std::filesystem::create_directories(folder.path);
  CHECK_THROWS_WITH(ChatTemplate(folder.path), ContainsSubstring("has no chat template"));
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(folder.path / file) << text; };
  const auto rendered = [&] { return ChatTemplate(folder.path).render({{"user", "x"}}, false); };
  write("tokenizer_config.json", R"({"chat_template": "{{ bos_token }}1", "bos_token": {"content": "<b>"}})");
  CHECK(rendered() == "<b>1");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "2"}, {"name": "default", "template": "3"}]})");
  CHECK(rendered() == "3");
  write("chat_template.jinja", "{{ messages[0].content }}{{ add_generation_prompt }}");
  CHECK(rendered() == "xFalse");
  CHECK_THROWS_WITH(ChatTemplate(folder.path).render({{"user", "\xFF"}}), ContainsSubstring("not valid UTF-8"));
  write("tokenizer_config.json", R"({"bos_token": )");
  CHECK_THROWS_WITH(ChatTemplate(folder.path), ContainsSubstring("not a JSON object"));
}
