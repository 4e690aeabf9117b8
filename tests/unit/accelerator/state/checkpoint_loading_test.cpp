// load_state() on checkpoints that are damaged, that match only in part, or that are still being written.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "checkpoint/manifest.hpp"
#include "core/checksum/crc.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

/// Damages a byte in the last quarter of the file with tensors, on rank 0. @collective
void damage(const State& state, const std::filesystem::path& checkpoint) {
  if (state.is_main_process()) {
    std::fstream file(checkpoint / "state.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto position = static_cast<std::streamoff>(file.tellg()) - 3000;
    file.seekg(position);
    const int byte = file.get();
    file.seekp(position);
    file.put(static_cast<char>(byte ^ 1));
  }
  state.wait_for_everyone();
}

void fill(torch::nn::Module& net, double value) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net.parameters()) parameter.fill_(value);
}

double first_of(const torch::nn::Module& net) { return net.parameters()[0].flatten()[0].item<double>(); }

}  // namespace

TEST_CASE("load_state skips damaged and incomplete checkpoints, which are an error if named") {
  test::Folder folder(State(), "fall_back");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}});
  Net net;
  torch::optim::AdamW adamw(net->parameters());
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  std::vector<std::filesystem::path> saved;
  for (int i = 0; i < 4; ++i) {
    fill(*net, i);
    saved.push_back(accelerator.save_state());
  }
  damage(accelerator, saved[3]);
  if (accelerator.is_main_process()) std::filesystem::remove(saved[2] / "manifest.json");
  accelerator.wait_for_everyone();
  fill(*net, 99);
  accelerator.load_state();
  CHECK(first_of(*net) == 1);
  CHECK_THROWS_WITH(accelerator.load_state(saved[3]), ContainsSubstring("is damaged") && ContainsSubstring("'ranks/"));
  CHECK_THROWS_WITH(accelerator.load_state(saved[2]), ContainsSubstring("manifest.json"));
  CHECK_NOTHROW(accelerator.load_state(saved[0]));
  CHECK(first_of(*net) == 0);
  accelerator.load_state(saved[3], {.verify = false});
  CHECK(first_of(*net) == 3);
  damage(accelerator, saved[0]);
  damage(accelerator, saved[1]);
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("No checkpoint could be loaded") &&
                                                  ContainsSubstring("checkpoint_0") &&
                                                  ContainsSubstring("checkpoint_3"));
}

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& content) { std::ofstream(file, std::ios::binary) << content; }

/// As a later version of Hortator may write it: with a right checksum.
void make_newer(const fs::path& manifest) {
  const auto json = test::content_of(manifest);
  const std::string key = ",\n\"crc32c\": ";
  auto body = json.substr(0, json.rfind(key));
  const std::string format = "\"format\": 2";
  body.replace(body.find(format), format.size(), "\"format\": 3");
  write(manifest, body + key + std::to_string(core::crc32c(body.data(), body.size())) + "}\n");
}

struct Damage {
  const char* file;
  std::function<void(const fs::path&)> apply;
};

const std::vector<Damage> damages = {
    {"manifest.json", [](const fs::path& file) { fs::remove(file); }},
    {"manifest.json", [](const fs::path& file) { fs::resize_file(file, 0); }},
    {"manifest.json", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
    {"manifest.json", [](const fs::path& file) { write(file, std::string(fs::file_size(file), 'x')); }},
    {"manifest.json", make_newer},
    {"state.h5", [](const fs::path& file) { fs::resize_file(file, 0); }},
    {"state.h5", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
    // Only reading all of it shows this damage; a program that saves without loading replaces it like a good one.
    {"state.h5", [](const fs::path& file) { write(file, std::string(fs::file_size(file), 'x')); }}};

std::int64_t kept_in(const fs::path& folder) {
  return std::count_if(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& entry) {
    return entry.path().filename().string().starts_with("checkpoint.damaged-");
  });
}

}  // namespace

TEST_CASE(
    "the only checkpoint, with any file missing or damaged, is an error, and is kept when the next one is saved") {
  const State state;
  for (std::size_t i = 0; i < damages.size(); ++i) {
    CAPTURE(i);
    const auto& damage = damages[i];
    test::Folder folder(state, "only_one");
    Accelerator accelerator({.project = {.dir = folder.path()}});
    Net net;
    auto model = accelerator.prepare(net);
    const auto saved = accelerator.save_state();
    if (state.is_main_process()) damage.apply(saved / damage.file);
    state.wait_for_everyone();
    CHECK(accelerator.has_checkpoint());
    CHECK_THROWS_WITH(accelerator.load_state(),
                      ContainsSubstring("No checkpoint could be loaded") && ContainsSubstring(saved.string()));
    CHECK(accelerator.save_state() == saved);
    accelerator.load_state();
    CHECK(kept_in(folder.path()) == 1);
    state.wait_for_everyone();
  }
}

TEST_CASE("an empty folder, and what a killed first save has left, are no checkpoint and do not block") {
  const State state;
  test::Folder folder(state, "killed_first");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  Net net;
  auto model = accelerator.prepare(net);
  if (state.is_main_process()) {
    fs::create_directory(folder.path() / "checkpoint");
    fs::create_directory(folder.path() / "checkpoint.new-20261121T075530.123456-9f3a51c2");
    write(folder.path() / "checkpoint.new-20261121T075530.123456-9f3a51c2" / "state.h5", "half");
  }
  state.wait_for_everyone();
  CHECK_FALSE(accelerator.has_checkpoint());
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("There is no checkpoint in"));
  accelerator.save_state();
  accelerator.load_state();
  CHECK(kept_in(folder.path()) == 0);
  state.wait_for_everyone();
}

TEST_CASE("with strict = false, matching tensors are loaded") {
  test::Folder folder(State(), "not_strict");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  {
    Net net;
    fill(*net, 5);
    torch::optim::AdamW adamw(net->parameters());
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    accelerator.save_state();
    accelerator.free_memory();
  }
  struct OtherImpl : torch::nn::Module {
    OtherImpl() {
      hidden = register_module("hidden", torch::nn::Linear(3, 4));
      out = register_module("out", torch::nn::Linear(4, 2));
      extra = register_module("extra", torch::nn::Linear(2, 2));
    }
    torch::nn::Linear hidden{nullptr};
    torch::nn::Linear out{nullptr};
    torch::nn::Linear extra{nullptr};
  };
  auto other = std::make_shared<OtherImpl>();
  fill(*other, 1);
  auto model = accelerator.prepare(other);
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("holds 1 optimizers, prepared are 0"));
  CHECK(first_of(*other) == 1);
  accelerator.load_state({}, {.strict = false});
  CHECK(other->hidden->weight[0][0].item<double>() == 5);
  CHECK(other->out->weight[0][0].item<double>() == 1);
  CHECK(other->extra->weight[0][0].item<double>() == 1);
}

namespace {

/// Damages a byte of a tensor, on rank 0. @collective
void damage_tensor(const State& state, const std::filesystem::path& checkpoint, const std::string& name) {
  if (state.is_main_process()) {
    const auto offset = checkpoint::read_manifest(checkpoint).datasets.at(name).pieces.front().offset;
    std::fstream file(checkpoint / "state.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put('\x5a');
  }
  state.wait_for_everyone();
}

struct WiderImpl : torch::nn::Module {
  WiderImpl() {
    hidden = register_module("hidden", torch::nn::Linear(3, 4));
    out = register_module("out", torch::nn::Linear(4, 1));
    extra = register_module("extra", torch::nn::Linear(2, 2));
  }
  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear out{nullptr};
  torch::nn::Linear extra{nullptr};
};

}  // namespace

TEST_CASE("with strict = false, nothing of a damaged checkpoint remains after an older one is loaded instead") {
  test::Folder folder(State(), "mixture");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}});
  {
    Net net;
    fill(*net, 1);
    auto model = accelerator.prepare(net);
    accelerator.save_state();
    accelerator.free_memory();
  }
  auto wider = std::make_shared<WiderImpl>();
  fill(*wider, 2);
  auto model = accelerator.prepare(wider);
  // The damage is in the tensor that is read last, and the older checkpoint has no "extra".
  damage_tensor(accelerator, accelerator.save_state(), "models/0/out.weight");
  fill(*wider, 3);
  accelerator.load_state({}, {.strict = false});
  CHECK(wider->hidden->weight[0][0].item<double>() == 1);
  CHECK(wider->extra->weight[0][0].item<double>() == 3);
}

TEST_CASE("asynchronous saving stores the state at the call, and completes before the run ends") {
  const State state;
  test::Folder folder(state, "asynchronous");
  const AcceleratorOptions options{.project = {.dir = folder.path(), .automatic_checkpoint_naming = true},
                                   .checkpoint = {.asynchronous = true}};
  Net net;
  {
    Accelerator accelerator(options);
    auto model = accelerator.prepare(net);
    for (int i = 0; i < 3; ++i) {
      fill(*net, i);
      accelerator.save_state();
      fill(*net, 50);
    }
    accelerator.wait_for_checkpoint();
    CHECK(accelerator.has_checkpoint());
    accelerator.load_state();
    CHECK(first_of(*net) == 2);
    fill(*net, 7);
    accelerator.save_state();
  }
  fill(*net, 0);
  Accelerator accelerator(options);
  auto model = accelerator.prepare(net);
  accelerator.load_state();
  CHECK(first_of(*net) == 7);
}

TEST_CASE("invalid checkpoint options are refused") {
  CHECK_THROWS_WITH(Accelerator({.checkpoint = {.nodes_per_file = 0}}), ContainsSubstring("nodes_per_file = 0"));
  CHECK_THROWS_WITH(Accelerator({.checkpoint = {.writer = CheckpointWriter::mpio, .asynchronous = true}}),
                    ContainsSubstring("MPI-IO belongs to the program"));
}

namespace {

/// Trains for `steps` batches on the first `ranks` ranks, from the checkpoint if there is one, and saves. Returns the
/// rows that these ranks saw. @collective
std::vector<std::int64_t> train_some(const std::filesystem::path& folder, int ranks, int steps, Net& net) {
  std::vector<std::int64_t> seen;
  const test::FirstRanks first_ranks(ranks);
  if (first_ranks.is_in()) {
    Accelerator accelerator(
        {.data = {.split_batches = true}, .project = {.dir = folder}, .communicator = first_ranks.handle()});
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, loader] =
        accelerator.prepare(net, adamw, data_loader(Rows{240}, {.batch_size = 12, .shuffle = true}));
    if (accelerator.has_checkpoint()) accelerator.load_state();
    for (auto& batch : loader) {
      auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      const auto rows = accelerator.gather(batch.data.select(1, 0).mul(10).round().to(at::kLong).contiguous());
      for (std::int64_t i = 0; i < rows.numel(); ++i) seen.push_back(rows[i].template item<std::int64_t>());
      if (--steps == 0) break;
    }
    accelerator.save_state();
    accelerator.wait_for_everyone();
  }
  return seen;
}

}  // namespace

TEST_CASE("a run resumes on another number of ranks: parameters and moments as saved, each sample once per epoch") {
  const State world;
  test::Folder folder(world, "elastic_run");
  set_seed(5);
  Net net;
  std::vector<std::int64_t> seen;
  for (const int ranks : {world.num_processes(), 1, std::max(world.num_processes() - 1, 1), world.num_processes()}) {
    const auto some = train_some(folder.path(), ranks, 5, net);
    seen.insert(seen.end(), some.begin(), some.end());
  }
  if (!world.is_main_process()) return;
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> all(240);
  std::iota(all.begin(), all.end(), 1);
  CHECK(seen == all);
}
