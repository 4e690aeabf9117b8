// The C interface: what it refuses, and that a simulation continues afterwards.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "c_run.hpp"
#include "support/called_operators.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr auto settings = R"(
models:
  line: {type: mlp, layers: [3, 2], optimizer: {type: sgd, lr: 0.1}}
  frozen: {type: mlp, layers: [3, 2]}
  wrong_type: {type: mpl}
  wrong_optimizer: {type: mlp, layers: [3, 2], optimizer: rmsprob}
  wrong_key: {type: mlp, layers: [3, 2], optimizer: {type: adam, learning_rate: 1}}
  missing_file: {type: torchscript, file: nowhere.pt}
  wrong_normal: {type: mlp, layers: [3, 2], flatten: true, normalize: true}
  normal: {type: mlp, layers: [3, 2], normalize: true, optimizer: sgd}
buffers:
  samples: {type: ring, capacity: 4, batch_size: 2}
  counted: {type: ring, capacity: 4, batch_size: 2, statistics: true}
  urgent: {type: priority, capacity: 4, batch_size: 2}
)";

std::vector<float> numbers(std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = std::sin(static_cast<float>(i));
  return all;
}

}  // namespace

TEST_CASE("begin reports a missing file, an unknown key and a bad communicator on all ranks", "[simulation]") {
  hortator_run* run = nullptr;
  const auto world = MPI_Comm_c2f(MPI_COMM_WORLD);
  CHECK(hortator_begin(world, "nowhere.yaml", &run) == HORTATOR_USAGE);
  CHECK(error_has("'nowhere.yaml' cannot be read"));
  CHECK(run == nullptr);
  const auto file = settings_file("bad", "bufers: {}\n");
  CHECK(hortator_begin(world, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(error_has("did you mean 'buffers'?"));
  CHECK(hortator_begin(123456789, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(error_has("communicator"));
  CHECK(hortator_begin(world, nullptr, &run) == HORTATOR_USAGE);
  CHECK(hortator_begin(world, file.c_str(), nullptr) == HORTATOR_USAGE);
  CHECK(hortator_end(nullptr, nullptr) == HORTATOR_USAGE);
}

TEST_CASE("a communicator that is not valid is a status on its rank at once", "[simulation]") {
  const auto file = settings_file("handle", settings);
  hortator_run* run = nullptr;
  if (world_rank() == 0) {  // the others do not call, and are not waited for
    for (const int handle : {123456789, static_cast<int>(MPI_Comm_c2f(MPI_COMM_NULL))}) {
      CHECK(hortator_begin(handle, file.c_str(), &run) == HORTATOR_USAGE);
      CHECK(error_has("The communicator is null, or its handle is not valid on this rank"));
      CHECK(hortator_share_samples(handle, nullptr, nullptr) == HORTATOR_USAGE);
    }
  }
  MPI_Comm freed = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  const auto old = MPI_Comm_c2f(freed);
  MPI_Comm_free(&freed);
  CHECK(hortator_begin(old, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(run == nullptr);
}

TEST_CASE("a communicator of two groups is refused on all ranks", "[simulation]") {
  if (world_size() < 2) return;
  const auto file = settings_file("groups", settings);
  const bool is_first = world_rank() == 0;
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_first ? 0 : 1, 0, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_first ? 1 : 0, 7, &both);
  hortator_run* run = nullptr;
  const auto status = hortator_begin(MPI_Comm_c2f(both), file.c_str(), &run);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("MPI_Intercomm_merge"));
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
}

TEST_CASE("a model that cannot be made is a status with a text on all ranks", "[simulation]") {
  const CRun run(settings_file("models", settings));
  REQUIRE(run.status() == HORTATOR_OK);
  const auto [name, text] =
      GENERATE(table<const char*, const char*>({{"lin", "did you mean 'line'?"},
                                                {"wrong_type", "did you mean 'mlp'?"},
                                                {"wrong_optimizer", "did you mean 'rmsprop'?"},
                                                {"wrong_key", "learning_rate is not a known key"},
                                                {"missing_file", "does not exist"},
                                                {"wrong_normal", "only models that know their features"}}));
  hortator_model* model = nullptr;
  const auto status = hortator_model_create(run, name, &model);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(model == nullptr);
  CAPTURE(hortator_last_error());
  CHECK(error_has(text));
}

TEST_CASE("a wrong shape on one rank fails on all, and the next step succeeds", "[simulation]") {
  const CRun run(settings_file("shape", settings));
  auto* model = run.model("line");
  REQUIRE(model != nullptr);
  auto data = numbers(12);
  auto target = numbers(8);
  const bool is_wrong_here = world_rank() == world_size() - 1;
  const Array input(data, is_wrong_here ? std::vector<std::int64_t>{3, 4} : std::vector<std::int64_t>{4, 3});
  const Array right(data, {4, 3});
  const Array goal(target, {4, 2});
  CBatch wrong(run);
  wrong.add(HORTATOR_INPUT, input).add(HORTATOR_TARGET, goal);
  double loss = -1;
  const auto status = hortator_train(model, wrong, &loss);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("rank " + std::to_string(world_size() - 1) + ": The input has the shape [3, 4]"));
  CHECK(loss == -1);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, right).add(HORTATOR_TARGET, goal);
  double first = 0;
  double last = 0;
  CHECK(hortator_train(model, batch, &first) == HORTATOR_OK);
  for (int i = 0; i < 20; ++i) CHECK(hortator_train(model, batch, &last) == HORTATOR_OK);
  CHECK(last < first);
}

TEST_CASE("targets, outputs and losses that do not fit are refused", "[simulation]") {
  const CRun run(settings_file("fit", settings));
  auto* model = run.model("line");
  auto data = numbers(12);
  auto out = numbers(8);
  const Array input(data, {4, 3});
  const Array column(out, {8});
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, input);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("0 targets"));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  batch.add(HORTATOR_TARGET, column).add(HORTATOR_OUTPUT, column);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("its target [8]"));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  CHECK(error_has("its array [8]"));
  CHECK(hortator_train(run.model("frozen"), batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("has no optimizer"));
  CHECK(hortator_infer(nullptr, batch) == HORTATOR_USAGE);
  CHECK(error_has("'model' is NULL"));
}

TEST_CASE("arrays that LibTorch cannot show are refused", "[simulation]") {
  const CRun run(settings_file("arrays", settings));
  CBatch batch(run);
  auto data = numbers(6);
  CHECK(batch.add(HORTATOR_INPUT, Array(nullptr, HORTATOR_F32, {2, 3})).status() == HORTATOR_USAGE);
  CHECK(error_has("has no data"));
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {2, -1})).status() == HORTATOR_USAGE);
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {huge, huge})).status() == HORTATOR_USAGE);
  CHECK(error_has("has too many elements"));
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {6}, {-1})).status() == HORTATOR_USAGE);
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), static_cast<hortator_type>(77), {6})).status() == HORTATOR_USAGE);
  CHECK(batch.add(static_cast<hortator_role>(9), Array(data, {6})).status() == HORTATOR_USAGE);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, nullptr) == HORTATOR_USAGE);
  CHECK(hortator_batch_free(nullptr) == HORTATOR_OK);
}

TEST_CASE("strided sections are read and written where they lie", "[simulation]") {
  const CRun run(settings_file("strides", settings));
  auto* model = run.model("line");
  auto padded = numbers(4 * 5);  // rows of three numbers, five apart
  std::vector<float> dense;
  for (int row = 0; row < 4; ++row) dense.insert(dense.end(), padded.begin() + 5 * row, padded.begin() + 5 * row + 3);
  std::vector<float> expected(8);
  std::vector<float> written(24, -7);  // columns of four numbers, every third one
  CBatch contiguous(run);
  contiguous.add(HORTATOR_INPUT, Array(dense, {4, 3})).add(HORTATOR_OUTPUT, Array(expected, {4, 2}));
  CBatch strided(run);
  strided.add(HORTATOR_INPUT, Array(padded.data(), HORTATOR_F32, {4, 3}, {5, 1}))
      .add(HORTATOR_OUTPUT, Array(written.data(), HORTATOR_F32, {4, 2}, {3, 12}));
  CHECK(hortator_infer(model, contiguous) == HORTATOR_OK);
  CHECK(hortator_infer(model, strided) == HORTATOR_OK);
  int untouched = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (i % 3 != 0) untouched += written[i] == -7 ? 1 : 0;
  }
  CHECK(untouched == 16);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 2; ++column)
      CHECK(written[3 * row + 12 * column] == expected[2 * row + column]);
  }
  dense[0] += 1;  // a batch reads what its arrays hold at the time of the call
  const float before = expected[0];
  CHECK(hortator_infer(model, contiguous) == HORTATOR_OK);
  CHECK(expected[0] != before);
}

TEST_CASE("infer writes the outputs of an MLP where they belong, without a copy", "[simulation]") {
  const CRun run(
      settings_file("direct",
                    "models:\n"
                    "  net: {type: mlp, layers: [3, 8, 8, 2]}\n"
                    "  bounded: {type: mlp, layers: [3, 8, 2], activation: gelu, output_activation: tanh}\n"));
  auto data = numbers(12);
  const auto before = data;
  std::vector<float> direct(8);
  std::vector<float> wide(16, -7);
  for (const char* name : {"net", "bounded"}) {
    CAPTURE(name);
    auto* model = run.model(name);
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_OUTPUT, Array(direct, {4, 2}));
    CBatch strided(run);
    strided.add(HORTATOR_INPUT, Array(data, {4, 3}))
        .add(HORTATOR_OUTPUT, Array(wide.data(), HORTATOR_F32, {4, 2}, {4, 2}));
    const auto called_by = [&](hortator_batch* arrays) {
      const CalledOperators operators;
      REQUIRE(hortator_infer(model, arrays) == HORTATOR_OK);
      return operators.names();
    };
    const auto called = called_by(batch);
    for (const auto* allocating : {"aten::clone", "aten::contiguous", "aten::relu", "aten::gelu", "aten::tanh"})
      CHECK(std::ranges::count(called, allocating) == 0);
    // LibTorch copies biases where sums begin. Outputs with strides are copied as well.
    CHECK(std::ranges::count(called_by(strided), "aten::copy_") == std::ranges::count(called, "aten::copy_") + 1);
    for (std::size_t i = 0; i < 8; ++i) CHECK(wide[2 * i] == direct[i]);
    CHECK(data == before);
  }
}

TEST_CASE("double arrays are converted for a model in single precision", "[simulation]") {
  const CRun run(settings_file("double", settings));
  auto* model = run.model("line");
  auto single = numbers(3);
  std::vector<double> twice(single.begin(), single.end());
  std::vector<float> expected(2);
  std::vector<double> result(2);
  CBatch in_single(run);
  in_single.add(HORTATOR_INPUT, Array(single, {1, 3})).add(HORTATOR_OUTPUT, Array(expected, {1, 2}));
  CBatch in_double(run);
  in_double.add(HORTATOR_INPUT, Array(twice.data(), HORTATOR_F64, {1, 3}))
      .add(HORTATOR_OUTPUT, Array(result.data(), HORTATOR_F64, {1, 2}));
  CHECK(hortator_infer(model, in_single) == HORTATOR_OK);
  CHECK(hortator_infer(model, in_double) == HORTATOR_OK);
  CHECK(result[0] == static_cast<double>(expected[0]));
}

TEST_CASE("the adjoint of a linear model is its transposed matrix", "[simulation]") {
  const CRun run(settings_file("adjoint", settings));
  auto* model = run.model("line");
  auto data = numbers(3);
  std::vector<float> out(2);
  std::vector<float> shifted(2);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {1, 3})).add(HORTATOR_OUTPUT, Array(out, {1, 2}));
  std::vector<float> weights = {2, -1};
  std::vector<float> gradient(3);
  CHECK(hortator_adjoint(model, batch, Array(weights, {1, 2}).get(), Array(gradient, {1, 3}).get()) == HORTATOR_OK);
  CHECK(hortator_infer(model, batch) == HORTATOR_OK);
  shifted = out;
  for (std::size_t i = 0; i < 3; ++i) {
    data[i] += 1;
    CHECK(hortator_infer(model, batch) == HORTATOR_OK);
    const float change = 2 * (out[0] - shifted[0]) - (out[1] - shifted[1]);
    CHECK(gradient[i] == Approx(change).margin(1e-5));
    shifted = out;
  }
  CHECK(hortator_adjoint(model, batch, Array(gradient, {1, 3}).get(), Array(gradient, {1, 3}).get()) == HORTATOR_USAGE);
}

TEST_CASE("an adjoint that does not exist is refused", "[simulation]") {
  const CRun run(settings_file("no_adjoint", settings));
  auto* model = run.model("line");
  std::vector<std::int32_t> whole = {1, 2, 3};
  std::vector<float> weights = {1, 1};
  std::vector<float> gradient(3);
  const auto adjoint = [&](hortator_batch* batch) {
    return hortator_adjoint(model, batch, Array(weights, {1, 2}).get(), Array(gradient, {1, 3}).get());
  };
  CBatch batch(run);
  CHECK(adjoint(batch) == HORTATOR_USAGE);
  CHECK(error_has("The batch has no input"));
  batch.add(HORTATOR_INPUT, Array(whole.data(), HORTATOR_I32, {1, 3}));
  CHECK(adjoint(batch) == HORTATOR_USAGE);
  CHECK(error_has("no derivatives with respect to whole numbers"));
  CHECK(hortator_adjoint(model, batch, nullptr, nullptr) == HORTATOR_USAGE);
}

TEST_CASE("results are not written to arrays that cannot hold them", "[simulation]") {
  const CRun run(settings_file("lossy", settings));
  auto* model = run.model("line");
  auto data = numbers(6);
  std::vector<std::int32_t> whole(4);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {2, 3})).add(HORTATOR_OUTPUT, Array(whole.data(), HORTATOR_I32, {2, 2}));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  CHECK(error_has("its fractions or imaginary parts would be lost"));
  CHECK(whole == std::vector<std::int32_t>(4));
  std::vector<float> row(2);
  CHECK(batch.add(HORTATOR_OUTPUT, Array(row.data(), HORTATOR_F32, {2, 2}, {0, 1})).status() == HORTATOR_USAGE);
  CHECK(error_has("Several elements of an output of the shape [2, 2] are the same memory"));
  CHECK(batch.add(HORTATOR_PRIORITY, Array(row, {2})).status() == HORTATOR_OK);
  CHECK(batch.add(HORTATOR_PRIORITY, Array(row, {2})).status() == HORTATOR_USAGE);
}

TEST_CASE("an argument that is missing on one rank is a status on all", "[simulation]") {
  const CRun run(settings_file("missing", settings));
  auto data = numbers(6);
  const Array array(data, {2, 3});
  const bool is_last = world_rank() + 1 == world_size();
  const auto check = [](hortator_status status) {
    CHECK(status == HORTATOR_USAGE);
    CHECK(same_on_all(status));
  };
  hortator_model* model = nullptr;
  hortator_buffer* buffer = nullptr;
  check(hortator_model_create(run, is_last ? nullptr : "line", &model));
  CHECK(error_has("A name is NULL"));
  check(hortator_buffer_create(run, is_last ? nullptr : "samples", &buffer));
  model = run.model("line");
  buffer = run.buffer("samples");
  const CBatch batch(run);
  check(hortator_train(model, is_last ? nullptr : static_cast<hortator_batch*>(batch), nullptr));
  check(hortator_buffer_train(buffer, is_last ? nullptr : model, 1, nullptr));
  CHECK(error_has("The model that the buffer 'samples' trains is NULL"));
  check(hortator_keep(run, is_last ? nullptr : "field", array.get(), HORTATOR_EACH));
  check(hortator_keep(run, "field", is_last ? nullptr : array.get(), HORTATOR_EACH));
  check(hortator_export(model, is_last ? nullptr : "exported"));
  hortator_run* other = nullptr;  // only the first rank's name counts
  const auto file = settings_file("missing_name", settings);
  const auto world = MPI_Comm_c2f(MPI_COMM_WORLD);
  check(hortator_begin(world, world_rank() == 0 ? nullptr : file.c_str(), &other));
  CHECK(error_has("hortator_begin got no settings file"));
  REQUIRE(hortator_begin(world, world_rank() == 0 ? file.c_str() : nullptr, &other) == HORTATOR_OK);
  hortator_model* foreign = nullptr;
  REQUIRE(hortator_model_create(other, "line", &foreign) == HORTATOR_OK);
  check(hortator_buffer_train(buffer, foreign, 1, nullptr));
  CHECK(error_has("belong to different runs"));
  CHECK(hortator_end(other, nullptr) == HORTATOR_OK);
}

TEST_CASE("a normalised model needs a buffer with statistics of inputs and targets", "[simulation]") {
  const CRun run(settings_file("normal", settings));
  auto* model = run.model("normal");
  auto data = numbers(12);
  auto target = numbers(8);
  CBatch without_target(run);
  without_target.add(HORTATOR_INPUT, Array(data, {4, 3}));
  const auto check = [&](const char* name, const char* text) {
    auto* buffer = run.buffer(name);
    REQUIRE(hortator_buffer_put(buffer, without_target) == HORTATOR_OK);
    const auto status = hortator_buffer_train(buffer, model, 1, nullptr);
    CHECK(status == HORTATOR_USAGE);
    CHECK(same_on_all(status));
    CAPTURE(hortator_last_error());
    CHECK(error_has(text));
  };
  check("samples", "is normalised, the buffer 'samples' keeps no statistics");
  check("counted", "The samples of 'counted' have no targets");
}

TEST_CASE("a buffer by priority refuses samples without a number from 0 for each", "[simulation]") {
  const CRun run(settings_file("urgent", settings));
  auto* buffer = run.buffer("urgent");
  auto data = numbers(12);
  const auto put = [&](std::vector<float> priorities) {
    const auto count = static_cast<std::int64_t>(priorities.size());
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(data, {4, 3}));
    if (count > 0) batch.add(HORTATOR_PRIORITY, Array(priorities, {count}));
    return hortator_buffer_put(buffer, batch);
  };
  CHECK(put({}) == HORTATOR_USAGE);
  CHECK(error_has("The buffer 'urgent' keeps samples by priority; the batch has none for 4 samples"));
  const std::vector<std::vector<float>> all_wrong = {{1, 2}, {1, 2, -3, 4}, {1, 2, std::nanf(""), 4}};
  for (const auto& wrong : all_wrong) {
    CHECK(put(wrong) == HORTATOR_USAGE);
    CHECK(error_has("other priorities than one number from 0 for each of 4 samples"));
  }
  std::int64_t count = -1;
  CHECK(hortator_buffer_count(buffer, &count) == HORTATOR_OK);
  CHECK(count == 0);
  CHECK(put({1, 2, 0, 4}) == HORTATOR_OK);
}

TEST_CASE("twenty failing calls of each kind leak nothing", "[simulation]") {
  const CRun run(settings_file("leaks", settings));
  auto* model = run.model("line");
  auto* buffer = run.buffer("samples");
  auto data = numbers(12);
  const Array wrong(data, {3, 4});
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, wrong).add(HORTATOR_TARGET, wrong).add(HORTATOR_OUTPUT, wrong);
  const auto fail = [&] {
    hortator_model* none = nullptr;
    int failed = 0;
    for (int i = 0; i < 20; ++i) {
      failed += hortator_train(model, batch, nullptr) != HORTATOR_OK;
      failed += hortator_evaluate(model, batch, nullptr) != HORTATOR_OK;
      failed += hortator_infer(model, batch) != HORTATOR_OK;
      failed += hortator_model_create(run, "missing_file", &none) != HORTATOR_OK;
      failed += hortator_model_create(run, "wrong_optimizer", &none) != HORTATOR_OK;
      failed += hortator_buffer_train(buffer, model, 1, nullptr) != HORTATOR_OK;
      failed += hortator_keep(run, "a/b", wrong.get(), HORTATOR_EACH) != HORTATOR_OK;
    }
    return failed;
  };
  CHECK(fail() == 140);  // the first calls allocate what later ones use again
  const auto before = mallinfo2().uordblks;
  CHECK(fail() == 140);
  const auto after = mallinfo2().uordblks;
  CHECK(static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before) < 4096);
}

TEST_CASE("a run on a part of the ranks, beside one of all", "[simulation]") {
  if (world_size() < 2) return;
  const CRun all(settings_file("all", settings));
  const auto file = settings_file("part", settings);
  const bool is_in = world_rank() > 0;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_in ? 1 : 0, 0, &part);
  auto data = numbers(12);
  auto target = numbers(8);
  if (is_in) {
    hortator_run* run = nullptr;
    REQUIRE(hortator_begin(MPI_Comm_c2f(part), file.c_str(), &run) == HORTATOR_OK);
    hortator_model* model = nullptr;
    CHECK(hortator_model_create(run, "line", &model) == HORTATOR_OK);
    {
      CBatch batch(run);
      batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
      CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    }
    CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  }
  MPI_Comm_free(&part);
  CBatch batch(all);
  batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
  CHECK(hortator_train(all.model("line"), batch, nullptr) == HORTATOR_OK);
}
