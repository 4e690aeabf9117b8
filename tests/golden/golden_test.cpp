// Replays the golden files of this folder; each case runs on the number of ranks that it needs.
#include "replay.hpp"
#include "runtime/identity/launcher.hpp"
#include "support/catch.hpp"

#include <mpi.h>

using namespace hortator;
using golden::json;

namespace {

int ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

golden::ReplaySummary replayed(const std::string& name) {
  const auto file = golden::read_file(std::string(GOLDEN_DIR "/") + name + ".json");
  const auto& format = golden::format_of(file);
  CHECK(format.name == name);
  auto summary = golden::replay(format, file, ranks());
  if (ranks() == 1) summary += golden::replay(format, file, 0);
  for (const auto& failure : summary.failures) UNSCOPED_INFO(failure);
  CHECK(summary.failures.empty());
  return summary;
}

// Replays one case with a wrong expected value, and returns the number of failures: the comparison must detect it.
int failures_of(const std::string& name, std::size_t index, const std::string& field, const json& wrong) {
  auto file = golden::read_file(std::string(GOLDEN_DIR "/") + name + ".json");
  const auto& format = golden::format_of(file);
  auto one = file["cases"][index];
  one[json::json_pointer(field)] = wrong;
  file["cases"] = json::array({one});  // compilers read {one} as one or as [one]
  return golden::replay(format, file, format.world(one)).failed();
}

// Replays a case given as JSON. Returns the rule by which it differs on purpose, "equal" or "differs".
std::string judged(const std::string& name, const std::string& text) {
  auto file = golden::read_file(std::string(GOLDEN_DIR "/") + name + ".json");
  const auto& format = golden::format_of(file);
  const auto one = json::parse(text);
  file["cases"] = json::array({one});  // compilers read {one} as one or as [one]
  const auto summary = golden::replay(format, file, format.world(one));
  if (summary.failed() > 0) return "differs";
  return summary.rules.empty() ? "equal" : summary.rules.begin()->first;
}

}  // namespace

TEST_CASE("collectives") {
  const auto summary = replayed("collectives");
  CHECK(summary.passed == std::map<int, int>{{1, 0}, {2, 38}, {3, 36}, {4, 38}}.at(ranks()));
  // Rank 1 checks the values of all ranks.
  if (ranks() != 2) return;
  CHECK(failures_of("collectives", 1, "/out/1/0", -13) == 1);
  CHECK(failures_of("collectives", 1, "/out_dtype", "float64") == 1);
  CHECK(failures_of("collectives", 1, "/out_shape", json::array({7})) == 1);
}

TEST_CASE("collectives differ from Accelerate only by the known rules") {
  if (ranks() != 2) return;
  const auto pads = [](const std::string& what) {
    return judged("collectives",
                  R"({"id": 1, "op": "pad_across_processes", "world": 2, "out_shape": [2], )" + what + "}");
  };
  CHECK(pads(R"("dtype": "uint8", "args": {"dim": 0, "pad_index": -1, "pad_first": 0}, "in": [[1], [1, 2]],
                "out": [[1, 255], [1, 2]])") == "what_fills_up_is_of_the_type");
  CHECK(pads(R"("dtype": "uint8", "args": {"dim": 0, "pad_index": 255, "pad_first": 0}, "in": [[1], [1, 2]],
                "out": [[1, 255], [1, 2]])") == "equal");
  CHECK(pads(R"("dtype": "bool", "args": {"dim": 0, "pad_index": 0, "pad_first": 0}, "in": [[true], [true, true]],
                "out": [[1, 0], [true, true]], "out_dtype": "int64")") == "padding_keeps_the_type");
  CHECK(pads(R"("dtype": "bool", "args": {"dim": 0, "pad_index": 0, "pad_first": 0}, "in": [[true], [true, true]],
                "out": [[1, 1], [true, false]], "out_dtype": "int64")") == "differs");

  const auto works = [](const std::string& op, const std::string& what) {
    return judged("collectives", R"({"id": 1, "op": ")" + op + R"(", "world": 2, )" + what + "}");
  };
  const std::string no_int16 =
      R"("dtype": "int16", "in": [[1, -2], [3, 4]], "error": ["Invalid scalar type", ""], "args": )";
  CHECK(works("gather", no_int16 + "{}") == "more_types_travel");
  CHECK(works("reduce", no_int16 + R"({"reduction": "sum"})") == "more_types_travel");
  CHECK(works("broadcast", no_int16 + R"({"from_process": 1})") == "more_types_travel");
  CHECK(works("reduce", R"("dtype": "float16", "args": {"reduction": "mean"}, "in": [[60000], [50000]],
                           "out": [["inf"], ["inf"]])") == "sums_of_16_bits_are_rounded_once");
  CHECK(works("reduce",
              R"("dtype": "float32", "args": {"reduction": "sum"}, "in": [[1], [2]], "out": [["inf"], ["inf"]])") ==
        "differs");
  CHECK(works("reduce", R"("dtype": "float32", "args": {"reduction": "max"}, "in": [["nan", 2], [1, 3]],
                           "out": [[1, 3], [1, 3]])") == "max_keeps_nan");
  CHECK(works("reduce", R"("dtype": "float32", "args": {"reduction": "max"}, "in": [[2], [1]], "out": [[1], [1]])") ==
        "differs");
  CHECK(works("gather_object", R"("dtype": "object", "args": {}, "in": [[1, 2], 5], "error": ["TypeError", ""])") ==
        "only_vectors_are_joined");
  CHECK(works("gather_object", R"("dtype": "object", "args": {}, "in": [[1, 2], [5]], "error": ["TypeError", ""])") ==
        "differs");
}

TEST_CASE("batch_sampler_shard") {
  if (ranks() > 1) return;
  const auto summary = replayed("batch_sampler_shard");
  CHECK(summary.passed == 2768);
  CHECK(summary.rules == std::map<std::string, int>{{"length_is_what_is_handed_out", 90}});
  CHECK(failures_of("batch_sampler_shard", 1, "/ranks/0", json::array({json::array({5})})) == 1);
}

TEST_CASE("iterable_dataset_shard") {
  if (ranks() > 1) return;
  const auto summary = replayed("iterable_dataset_shard");
  CHECK(summary.passed == 1404);
  CHECK(summary.rules ==
        std::map<std::string, int>{{"length_is_what_is_handed_out", 149}, {"one_sample_cannot_be_split", 120}});
  CHECK(failures_of("iterable_dataset_shard", 600, "/ranks/0", json::array({5})) == 1);
}

TEST_CASE("skip_first_batches") {
  if (ranks() > 1) return;
  const auto summary = replayed("skip_first_batches");
  CHECK(summary.passed == 631);
  CHECK(summary.rules == std::map<std::string, int>{{"length_is_never_negative", 185}, {"remainder_is_kept", 183}});
  CHECK(failures_of("skip_first_batches", 100, "/ranks/0", json::array({json::array({5})})) == 1);
}

TEST_CASE("gather_for_metrics") {
  const auto summary = replayed("gather_for_metrics");
  CHECK(summary.passed == std::map<int, int>{{1, 747}, {2, 510}, {3, 423}, {4, 418}}.at(ranks()));
  CHECK_FALSE(summary.rules.contains("?"));
  if (ranks() > 1) return;
  CHECK(failures_of("gather_for_metrics", 0, "/gathered/0/0", 5) == 1);
  CHECK(failures_of("gather_for_metrics", 0, "/ranks/0/0", json::array({5})) == 1);
  CHECK(failures_of("gather_for_metrics", 0, "/remainder", 5) == 1);
}

TEST_CASE("checkpoint_naming") {
  if (ranks() > 1) return;
  const auto summary = replayed("checkpoint_naming");
  CHECK(summary.passed == 8);
  CHECK(summary.rules ==
        std::map<std::string, int>{{"a_new_run_counts_on", 3}, {"files_of_our_own", 1}, {"the_number_is_restored", 4}});
  CHECK(judged("checkpoint_naming", R"({"id": 1, "total_limit": 0, "saves": 1, "start_iteration": 0,
                                         "after_each": [["checkpoint_0"]]})") == "a_limit_leaves_room_for_one");
  CHECK(failures_of("checkpoint_naming", 1, "/after_each/2",
                    json::array({"checkpoint_0", "checkpoint_1", "checkpoint_2"})) == 1);
}

TEST_CASE("seedable_sampler") {
  if (ranks() > 1) return;
  const auto summary = replayed("seedable_sampler");
  CHECK(summary.passed == 46);
  CHECK(summary.rules == std::map<std::string, int>{{"an_epoch_has_each_sample_once", 2}});
  CHECK(failures_of("seedable_sampler", 0, "/order", json::array({1})) == 1);
}

TEST_CASE("safetensors") {
  if (ranks() > 1) return;
  const auto summary = replayed("safetensors");
  CHECK(summary.passed == 42);
  CHECK(summary.rules.empty());
  CHECK(failures_of("safetensors", 0, "/tensors/w/values/2", 0.25) == 1);
  CHECK(failures_of("safetensors", 0, "/tensors/w/bytes_hex", "00") == 1);
  CHECK(failures_of("safetensors", 1, "/file_order/0", "u8") == 1);
  CHECK(failures_of("safetensors", 5, "/metadata/format", "tf") == 1);
  CHECK(failures_of("safetensors", 14, "/opens", 1) == 1);
}

TEST_CASE("shard_checkpoint") {
  if (ranks() > 1) return;
  const auto summary = replayed("shard_checkpoint");
  CHECK(summary.passed == 67);
  CHECK(summary.rules == std::map<std::string, int>{{"a_bare_number_is_bytes", 1}, {"bits_or_bytes_is_asked", 1}});
  CHECK(failures_of("shard_checkpoint", 0, "/total_size", 5) == 1);
  CHECK(failures_of("shard_checkpoint", 0, "/index/weight_map/w5", "model-00001-of-00003.safetensors") == 1);
  CHECK(failures_of("shard_checkpoint", 0, "/files/model-00003-of-00003.safetensors/0", "w4") == 1);
}

TEST_CASE("convert_size") {
  if (ranks() > 1) return;
  const auto summary = replayed("convert_size");
  CHECK(summary.passed == 73);
  CHECK(summary.rules == std::map<std::string, int>{{"a_bare_number_is_bytes", 4},
                                                    {"binary_units_are_named_so", 18},
                                                    {"bits_or_bytes_is_asked", 5}});
  CHECK(judged("convert_size", R"({"id": 1, "in": "1_0MB\n", "accelerate": 10000000})") ==
        "digits_have_no_underscores");
  CHECK(judged("convert_size", R"({"id": 1, "in": "5 apples", "accelerate": 5})") == "differs");
  CHECK(judged("convert_size", R"({"id": 1, "in": "1e10GB", "accelerate": 1e19})") == "sizes_have_63_bits");
  CHECK(failures_of("convert_size", 3, "/accelerate", 10001) == 1);
  CHECK(failures_of("convert_size", 55, "/convert_bytes", "3 bytes") == 1);
}

TEST_CASE("split_between_processes") {
  const auto summary = replayed("split_between_processes");
  // The cases for five ranks run on one rank.
  CHECK(summary.passed == std::map<int, int>{{1, 74 + 71}, {2, 75}, {3, 74}, {4, 76}}.at(ranks()));
  CHECK(summary.rules == std::map<std::string, int>{{"lists_of_every_kind_are_padded",
                                                     std::map<int, int>{{1, 5}, {2, 5}, {3, 3}, {4, 4}}.at(ranks())}});
  if (ranks() == 2) CHECK(failures_of("split_between_processes", 46, "/ranks/1", json::array({3})) == 1);
}

TEST_CASE("environment") {
  if (ranks() > 1) return;
  const auto summary = replayed("environment");
  CHECK(summary.passed == 28);
  CHECK(summary.rules == std::map<std::string, int>{{"one_launcher_says_all", 2}});
  CHECK(judged("environment", R"({"id": 1, "kind": "rank_info", "env": {"PALS_RANKID": "3", "PMI_SIZE": "4"}, "rank": 0,
                                   "world_size": 4, "local_rank": 0, "local_world_size": 1})") == "pals_is_read");
  CHECK(failures_of("environment", 1, "/rank", 4) == 1);
  CHECK(failures_of("environment", 10, "/out", 0) == 1);
}

TEST_CASE("find_batch_size") {
  if (ranks() > 1) return;
  const auto summary = replayed("find_batch_size");
  CHECK(summary.passed == 11);
  CHECK(summary.rules.empty());
  CHECK(failures_of("find_batch_size", 0, "/tried/1", 114) == 1);
  CHECK(failures_of("find_batch_size", 7, "/retry", false) == 1);
}

TEST_CASE("infer_auto_device_map") {
  if (ranks() > 1) return;
  const auto summary = replayed("infer_auto_device_map");
  CHECK(summary.passed == 498);
  CHECK(summary.rules == std::map<std::string, int>{{"buffers_of_split_modules_have_places", 31}});
  CHECK(failures_of("infer_auto_device_map", 0, "/sizes/linear1", 65) == 1);
}

TEST_CASE("estimate_memory") {
  if (ranks() > 1) return;
  const auto summary = replayed("estimate_memory");
  CHECK(summary.passed == 50);
  CHECK(summary.rules == std::map<std::string, int>{{"a_row_says_what_its_type_takes", 16}});
  CHECK(failures_of("estimate_memory", 0, "/rows/1/total", 117) == 1);
}

TEST_CASE("accumulate") {
  const auto summary = replayed("accumulate");
  CHECK(summary.passed == std::map<int, int>{{1, 256}, {2, 266}, {3, 250}, {4, 267}}.at(ranks()));
  CHECK(summary.rules.empty());
  if (ranks() > 1) return;
  CHECK(failures_of("accumulate", 0, "/opt_steps/1", 3) == 1);
  CHECK(failures_of("accumulate", 0, "/sched_last_epoch/3", 3) == 1);
}

TEST_CASE("training_trace") {
  const auto summary = replayed("training_trace");
  CHECK(summary.passed == std::map<int, int>{{1, 45}, {2, 52}, {3, 54}, {4, 52}}.at(ranks()));
  CHECK(summary.rules.empty());
  if (ranks() > 1) return;
  CHECK(failures_of("training_trace", 0, "/losses/0/1", 0.5) == 1);
  CHECK(failures_of("training_trace", 0, "/params/0/0", 0.5) == 1);
}

TEST_CASE("grad_scaler") {
  if (ranks() > 1) return;
  const auto summary = replayed("grad_scaler");
  CHECK(summary.passed == 132);
  CHECK(summary.rules.empty());
  CHECK(failures_of("grad_scaler", 0, "/seq/3/1", 5) == 1);
}

TEST_CASE("a file of an unknown format is an error that lists the known formats") {
  CHECK_THROWS_WITH(golden::read_file("nowhere.json"), ContainsSubstring("Cannot read the file 'nowhere.json'"));
  CHECK_THROWS_WITH(golden::read_file(GOLDEN_DIR "/replay.hpp"), ContainsSubstring("is not valid JSON"));
  CHECK_THROWS_WITH(golden::format_of(json::array()), ContainsSubstring("has no list of cases"));
  CHECK_THROWS_WITH(golden::format_of({{"cases", json::array()}}), ContainsSubstring("has no list of cases"));
  CHECK_THROWS_WITH(golden::format_of({{"cases", {1, 2}}}), ContainsSubstring("has no list of cases"));
  CHECK_THROWS_WITH(golden::format_of({{"cases", {{{"id", 1}, {"kind", "other"}}}}}),
                    ContainsSubstring("collectives") && ContainsSubstring(R"("kind":"other")"));
}

TEST_CASE("an unknown value in a case is an error") {
  const json one = {{"kind", "other"}};
  CHECK_THROWS_WITH(golden::one_of(one, "kind", {"this", "that"}),
                    ContainsSubstring("'other'") && ContainsSubstring("this, that"));
  CHECK(golden::one_of(one, "kind", {"other"}) == "other");
  CHECK(golden::ranks_for(golden::accumulate(), one) == std::nullopt);
  CHECK(golden::ranks_for(golden::accumulate(), {{"world", 3}}) == 3);
  CHECK(golden::name_of_case({{"id", 7}}) == "case 7");
  CHECK(golden::name_of_case(one) == R"(case {"kind":"other"})");
}
