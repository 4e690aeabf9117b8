#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "data/text/text_columns.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

TEST_CASE("pairs of MRPC's layout are read, quotes as they are") {
  const LabelledTexts texts(write("mrpc.tsv",
                                  "\xef\xbb\xbfQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
                                  "1\t702876\t702977\tHe said \"no\".\t\"No, he said.\r\n"
                                  "\r\n"
                                  "0\t1\t2\t\" Left open\tright\r\n"));
  REQUIRE(texts.size() == 2);
  CHECK(texts.has_pairs());
  CHECK(texts.num_classes() == 2);
  CHECK(texts.get(0).text == "He said \"no\".");
  CHECK(texts.get(0).pair == "\"No, he said.");
  CHECK(texts.get(0).label == 1);
  CHECK(texts.get(1).text == "\" Left open");
  CHECK(texts.get(1).label == 0);
  CHECK_THROWS_WITH(texts.get(2), ContainsSubstring("2"));
}

TEST_CASE("single texts of SST-2's layout are read, also without an end of the last line") {
  const LabelledTexts texts(write("sst.tsv", "sentence\tlabel\nhide new secretions \t0\n\t2"));
  REQUIRE(texts.size() == 2);
  CHECK_FALSE(texts.has_pairs());
  CHECK_FALSE(texts.get(0).pair);
  CHECK(texts.get(0).text == "hide new secretions ");
  CHECK(texts.get(1).text.empty());
  CHECK(texts.num_classes() == 3);
}

TEST_CASE("classes may have names, and columns may be named") {
  const auto path =
      write("qnli.tsv", "index\tquestion\tsentence\tlabel\n0\tq\ts\tnot_entailment\n1\tq\ts\tentailment\n");
  const LabelledTexts texts(path, {.classes = {"entailment", "not_entailment"}});
  CHECK(texts.get(0).label == 1);
  CHECK(texts.get(1).label == 0);
  CHECK(texts.num_classes() == 2);
  const LabelledTexts cola(write("cola.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tThey is.\n"),
                           {.columns = {"source", "label", "mark", "sentence"}});
  REQUIRE(cola.size() == 2);
  CHECK(cola.get(1).text == "They is.");
  const LabelledTexts swapped(path, {.text = "sentence", .pair = "question", .label = "index"});
  CHECK(swapped.get(0).text == "s");
  CHECK(swapped.get(0).pair == "q");
  CHECK(swapped.get(1).label == 1);
  CHECK_FALSE(LabelledTexts(path, {.text = "question", .label = "index"}).has_pairs());
}

TEST_CASE("JSON lines are read like TSV") {
  const LabelledTexts pairs(write("pairs.jsonl",
                                  "{\"sentence1\": \"a\\tb\", \"sentence2\": \"c\", \"label\": 1}\n\n"
                                  "{\"label\": 0, \"sentence2\": \"e\", \"sentence1\": \"d\", \"idx\": 7}\n"));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs.get(0).text == "a\tb");
  CHECK(pairs.get(1).pair == "e");
  CHECK(pairs.get(1).label == 0);
  const LabelledTexts named(write("named.jsonl", "{\"text\": \"x\", \"label\": \"good\"}\n"),
                            {.classes = {"bad", "good"}});
  CHECK(named.get(0).label == 1);
  CHECK_THROWS_WITH(LabelledTexts(write("bad.jsonl", "{\"text\": \"x\", \"label\": -1}\n")),
                    ContainsSubstring("bad.jsonl\", row 1") && ContainsSubstring("'-1'"));
  CHECK_THROWS_WITH(LabelledTexts(write("no.jsonl", "[1]\n")), ContainsSubstring("does not begin with a JSON object"));
}

TEST_CASE("files of texts that do not fit are reported with file and line") {
  CHECK_THROWS_WITH(LabelledTexts(write("other.tsv", "a\tb\n1\t2\n")),
                    ContainsSubstring("other.tsv' has the columns a, b") || ContainsSubstring("has the columns a, b"));
  CHECK_THROWS_WITH(LabelledTexts(write("empty.tsv", "")), ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(LabelledTexts(write("header.tsv", "sentence\tlabel\n")), ContainsSubstring("has no rows"));
  CHECK_THROWS_WITH(LabelledTexts(write("tab.tsv", "sentence\tlabel\none\ttwo\t0\n")),
                    ContainsSubstring("tab.tsv:2") && ContainsSubstring("3 columns, expected 2"));
  CHECK_THROWS_WITH(LabelledTexts(write("label.tsv", "sentence\tlabel\nx\t0\nx\tgood\n")),
                    ContainsSubstring("label.tsv:3") && ContainsSubstring("'good'") && ContainsSubstring(".classes"));
  CHECK_THROWS_WITH(LabelledTexts("label.tsv", {.classes = {"good", "bad"}}), ContainsSubstring("label.tsv:2"));
  CHECK_THROWS_WITH(LabelledTexts("label.tsv", {.text = "sentense"}), ContainsSubstring("did you mean 'sentence'"));
  CHECK_THROWS_WITH(LabelledTexts("label.tsv", {.pair = "sentence"}), ContainsSubstring("without .text"));
  CHECK_THROWS_WITH(LabelledTexts("nowhere.tsv"), ContainsSubstring("nowhere.tsv"));
  CHECK_THROWS_WITH(LabelledTexts("nowhere.jsonl"),
                    ContainsSubstring("nowhere.jsonl") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(LabelledTexts(write("packed.jsonl", "\x1f\x8b\x08 and more")), ContainsSubstring("compressed"));
}
