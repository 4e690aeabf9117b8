#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <fstream>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/bigmodel/weights.hpp>
#include <limits>
#include <memory>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "formats/torch/pickle/file.hpp"
#include "formats/torch/pickle/writer.hpp"
#include "support/catch.hpp"
#include "tools/checkpoint/difference.hpp"
#include "unit/tools/run_checkpoint.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using test::run_verb;
using tools::checkpoints::difference;
namespace fs = std::filesystem;

namespace {

const std::vector<std::pair<std::string, at::Tensor>> model_weights = {
    {"layer.weight", at::arange(6000, at::kFloat).view({100, 60})},
    {"layer.bias", at::arange(5, at::kFloat).to(at::kBFloat16)},
    {"layer.scale", at::arange(8, at::kFloat).to(at::kFloat8_e4m3fn)},
    {"layer.steps", at::scalar_tensor(7, at::kLong)},
    {"layer.mask", at::ones({3}, at::kBool)},
    {"layer.empty", at::empty({0, 4}, at::kHalf)},
};

/// A checkpoint of these weights and of some state beside them, which `change` may alter.
template <typename Change>
fs::path checkpoint_with(const std::string& name, const Change& change) {
  checkpoint::Snapshot state;
  for (const auto& [weight, tensor] : model_weights) state.common.put("models/0/" + weight, tensor.clone());
  state.common.put("optimizers/0/state/layer.weight/exp_avg", at::ones({100, 60}));
  state.common.put("optimizers/0/groups/0/lr", 0.5);
  state.common.put("loaders/0/order", "shuffled");
  change(state.common);
  return checkpoint::save(mpi::Communicator::world(), fs::absolute(name), state);
}

fs::path plain_checkpoint(const std::string& name) {
  return checkpoint_with(name, [](StateDict&) {});
}

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && difference(a, b, 0).elements == 0;
}

}  // namespace

TEST_CASE("export and diff take a project's folder, and use its newest complete checkpoint") {
  const auto project = fs::absolute("transfer_project");
  fs::remove_all(project);
  for (const int number : {2, 10, 11}) {
    checkpoint::Snapshot state;
    state.common.put("models/0/weight", at::full({3}, number));
    checkpoint::save(mpi::Communicator::world(), project / "checkpoints" / ("checkpoint_" + std::to_string(number)),
                     state, {.step = number});
  }
  fs::remove(project / "checkpoints" / "checkpoint_11" / "manifest.json");
  for (const auto& folder : {project, project / "checkpoints", project / "checkpoints" / "checkpoint_10" / ""}) {
    const auto exported = run_verb({"checkpoint", "export", folder.string(), "newest.safetensors"});
    CHECK(exported.code == 0);
    CHECK_THAT(exported.output, ContainsSubstring("checkpoint_10"));
    CHECK(run_verb({"checkpoint", "diff", folder.string(), "newest.safetensors"}).code == 0);
  }
  for (const int number : {2, 10}) fs::remove_all(project / "checkpoints" / ("checkpoint_" + std::to_string(number)));
  CHECK_THAT(run_verb({"checkpoint", "export", project.string(), "none.pt"}).output,
             ContainsSubstring("checkpoint_11") && ContainsSubstring("manifest.json"));
}

TEST_CASE("export reports the weights that it leaves out, and writes the averages that it is asked for") {
  const auto folder = checkpoint_with("transfer_several", [](StateDict& state) {
    state.put("models/1/weight", at::ones({2}));
    state.put("averages/ema/layer.weight", at::full({100, 60}, 0.25F));
    state.put("averages/ema/updates", std::int64_t{3});
  });
  const auto first = run_verb({"checkpoint", "export", folder.string(), "first.safetensors"});
  CHECK(first.code == 0);
  CHECK_THAT(first.output, ContainsSubstring("left out: model 1 (--model 1), averages 'ema' (--averages ema)"));
  const auto averaged =
      run_verb({"checkpoint", "export", folder.string(), "averaged.safetensors", "--averages", "ema"});
  CHECK(averaged.code == 0);
  CHECK_THAT(averaged.output, ContainsSubstring("left out: model 1 (--model 1)\n"));
  const auto source = weights::open_weights("averaged.safetensors");
  CHECK(at::equal(source->tensor("layer.weight"), at::full({100, 60}, 0.25F)));
  CHECK(at::equal(source->tensor("layer.bias"), model_weights[1].second));
  CHECK(source->names().size() == model_weights.size());
  const auto wrong = run_verb({"checkpoint", "export", folder.string(), "wrong.pt", "--averages", "emma"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.output,
             ContainsSubstring("has no averages 'emma' of model 0") && ContainsSubstring("it holds: ema"));
  CHECK(run_verb({"checkpoint", "export", "averaged.safetensors", "again.pt", "--averages", "ema"}).code == 2);
  CHECK(run_verb({"checkpoint", "export", folder.string(), "out", "--to", "accelerate", "--averages", "ema"}).code ==
        2);
  const auto plain = run_verb({"checkpoint", "export", plain_checkpoint("transfer_one").string(), "one.safetensors"});
  CHECK(plain.output.find("left out") == std::string::npos);
}

TEST_CASE("weights survive export and import") {
  const auto from = plain_checkpoint("transfer_from").string();
  for (const auto* extension : {".safetensors", ".pt", ".bin"}) {
    const auto file = std::string("transfer") + extension;
    const auto exported = run_verb({"checkpoint", "export", from, file});
    INFO(exported.output);
    CHECK(exported.code == 0);
    CHECK_THAT(exported.output, ContainsSubstring("6 tensors of 23.5 KiB"));
    fs::remove_all("transfer_to");
    CHECK(run_verb({"checkpoint", "import", file, "transfer_to"}).code == 0);
    const checkpoint::Reader reader("transfer_to");
    CHECK(reader.tensors().size() == model_weights.size());
    for (const auto& [name, tensor] : model_weights) CHECK(is_same(reader.read("models/0/" + name), tensor));
    CHECK(run_verb({"checkpoint", "diff", from, file}).code == 0);
    CHECK(run_verb({"checkpoint", "verify", "transfer_to"}).code == 0);
  }
  const SafetensorsFile safe("transfer.safetensors");
  CHECK(safe.metadata().at("format") == "pt");
  for (const auto& [name, tensor] : model_weights) CHECK(is_same(safe.get(name), tensor));
  const formats::PickleFile pickle("transfer.pt");
  for (const auto& [name, tensor] : model_weights) CHECK(is_same(pickle.get(name), tensor));
  CHECK(run_verb({"checkpoint", "export", "transfer.pt", "again.safetensors"}).code == 0);
  CHECK(run_verb({"checkpoint", "diff", "again.safetensors", "transfer.safetensors"}).code == 0);
  for (const auto& entry : fs::directory_iterator("."))
    CHECK(entry.path().filename().string().find(".new-") == std::string::npos);
}

namespace {

struct Embedding : torch::nn::Module {
  explicit Embedding(bool tied) {
    register_parameter("embed", at::zeros({6, 4}));
    register_parameter("head", tied ? named_parameters()["embed"] : at::zeros({6, 4}));
  }
};

bool holds(const torch::nn::Module& net, const at::Tensor& values) {
  return at::equal(net.named_parameters()["embed"], values) && at::equal(net.parameters().back(), values);
}

}  // namespace

TEST_CASE("tied tensors are exported under each name and imported from one or both") {
  const auto values = at::arange(24, at::kFloat).view({6, 4});
  checkpoint::Snapshot state;
  for (const auto* name : {"models/0/embed", "models/0/head"}) state.common.put(name, values);
  const auto from = checkpoint::save(mpi::Communicator::world(), fs::absolute("tied_from"), state).string();
  for (const auto* file : {"tied.safetensors", "tied.pt"}) {
    INFO(file);
    CHECK(run_verb({"checkpoint", "export", from, file}).code == 0);
    fs::remove_all("tied_to");
    CHECK(run_verb({"checkpoint", "import", file, "tied_to"}).code == 0);
    for (const auto* place : {file, "tied_to"}) {
      for (const bool tied : {true, false}) {
        Embedding net(tied);
        load_checkpoint_in_model(net, place);
        CHECK(holds(net, values));
      }
    }
  }
  // As safetensors leaves one of two names out, and as Python's torch.save has two names for one storage.
  formats::write_pickle("one_name.pt", {{"embed", values}});
  formats::write_pickle("one_storage.pt", {{"embed", values}, {"head", values}});
  CHECK(fs::file_size("one_storage.pt") < fs::file_size("tied.pt"));
  for (const auto* file : {"one_name.pt", "one_storage.pt"}) {
    INFO(file);
    fs::remove_all("tied_to");
    CHECK(run_verb({"checkpoint", "import", file, "tied_to"}).code == 0);
    CHECK(run_verb({"checkpoint", "export", "tied_to", "tied_again.safetensors"}).code == 0);
    for (const auto* place : {"tied_to", "tied_again.safetensors"}) {
      Embedding net(true);
      load_checkpoint_in_model(net, place);
      CHECK(holds(net, values));
    }
  }
  fs::remove_all("tied_to");
  CHECK(run_verb({"checkpoint", "import", "one_name.pt", "tied_to"}).code == 0);
  Embedding untied(false);
  CHECK_THROWS_WITH(load_checkpoint_in_model(untied, "tied_to"), ContainsSubstring("missing 'head'"));
}

namespace {

/// While it lives, counts the bytes of CPU tensors that are in memory at once.
class TensorBytes final : public c10::Allocator {
 public:
  TensorBytes() : inner_(c10::GetAllocator(at::kCPU)) { c10::SetAllocator(at::kCPU, this, max_priority); }
  ~TensorBytes() override { c10::SetAllocator(at::kCPU, inner_, max_priority); }
  TensorBytes(const TensorBytes&) = delete;
  TensorBytes& operator=(const TensorBytes&) = delete;

  std::int64_t peak() const { return peak_; }
  c10::DataPtr allocate(std::size_t bytes) override {
    auto block = std::make_unique<Block>(Block{inner_->allocate(bytes), static_cast<std::int64_t>(bytes), this});
    held_ += block->bytes;
    peak_ = std::max(peak_, held_);
    auto* data = block->memory.get();
    return {data, block.release(), &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static constexpr std::uint8_t max_priority = 255;
  struct Block {
    c10::DataPtr memory;
    std::int64_t bytes;
    TensorBytes* owner;
  };
  static void release(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    block->owner->held_ -= block->bytes;
  }

  c10::Allocator* inner_;
  std::int64_t held_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace

TEST_CASE("parts of FSDP and DeepSpeed become one file or a checkpoint with one tensor in memory at a time") {
  for (const std::string name : {"deepspeed/stage1", "deepspeed/stage2", "deepspeed/stage3", "fsdp/sharded"}) {
    INFO(name);
    const auto from = (fs::path(PARTS_CASES) / name).string();
    const auto python = (fs::path(PARTS_CASES) / (name + ".safetensors")).string();
    const auto source = weights::open_weights(from);
    std::int64_t largest = 0, all = 0;
    for (const auto& tensor : source->names()) {
      largest = std::max(largest, source->spec(tensor).bytes());
      all += source->spec(tensor).bytes();
    }
    REQUIRE(largest < all);
    fs::remove_all("parts_to");
    for (const auto& verb : {tools::Arguments{"checkpoint", "merge", from, "parts.safetensors"},
                             {"checkpoint", "merge", from, "parts.pt"},
                             {"checkpoint", "import", from, "parts_to"}}) {
      INFO(verb[1] << " to " << verb[3]);
      const TensorBytes bytes;
      const auto outcome = run_verb(verb);
      INFO(outcome.output);
      CHECK(outcome.code == 0);
      CHECK(bytes.peak() <= largest);
      CHECK(bytes.peak() > 0);
    }
    for (const auto* result : {"parts.safetensors", "parts.pt", "parts_to"}) {
      INFO(result);
      CHECK_THAT(run_verb({"checkpoint", "diff", from, result}).output, ContainsSubstring("differ"));
      CHECK(run_verb({"checkpoint", "diff", from, result}).code == 0);
    }
    const SafetensorsFile merged("parts.safetensors"), whole(python);
    for (const auto& tensor : merged.names()) CHECK(is_same(merged.get(tensor), whole.get(tensor)));
  }
}

TEST_CASE("export and import refuse invalid input and leave no files") {
  const auto from = plain_checkpoint("refusing").string();
  CHECK_THAT(run_verb({"checkpoint", "export", from}).output, ContainsSubstring("Expected two paths, got 1"));
  CHECK_THAT(run_verb({"checkpoint", "export", from, "model.onnx"}).output,
             ContainsSubstring("Unknown file format of"));
  CHECK_THAT(run_verb({"checkpoint", "export", from, "x.pt", "--model", "1"}).output,
             ContainsSubstring("no model number 1"));
  CHECK_THAT(run_verb({"checkpoint", "import", "absent.pt", "out"}).output, ContainsSubstring("absent.pt"));
  std::ofstream("broken.pt") << "no archive";
  CHECK(run_verb({"checkpoint", "import", "broken.pt", "broken_out"}).code != 0);
  CHECK_FALSE(fs::exists("broken_out"));
  CHECK_FALSE(fs::exists("x.pt"));
  CHECK_THAT(run_verb({"checkpoint", "export", "--help"}).output, ContainsSubstring("--model"));
  CHECK_THAT(run_verb({"checkpoint", "import", "--help"}).output,
             ContainsSubstring("usage: hortator checkpoint import"));
}

TEST_CASE("diff of two checkpoints lists all differences, the largest first") {
  const auto a = plain_checkpoint("diff_a").string();
  CHECK(run_verb({"checkpoint", "diff", a, a}).code == 0);
  const auto b = checkpoint_with("diff_b", [](StateDict& state) {
                   state.get<at::Tensor>("models/0/layer.weight")[3][4].add_(0.25);
                   state.get<at::Tensor>("models/0/layer.weight")[5][6].sub_(0.125);
                   state.get<at::Tensor>("models/0/layer.steps").add_(2);
                   state.put("models/0/layer.mask", at::ones({4}, at::kBool));
                   state.put("models/0/layer.bias", at::arange(5, at::kFloat));
                   state.put("models/0/added", at::zeros({1}));
                   state.put("optimizers/0/groups/0/lr", 0.25);
                   state.put("extra", 1);
                 }).string();
  const auto [code, output] = run_verb({"checkpoint", "diff", a, b});
  INFO(output);
  CHECK(code == 1);
  for (const auto* line :
       {"+ models/0/added  float32 [1]\n", "~ models/0/layer.mask  bool [3] | bool [4]\n",
        "~ models/0/layer.bias  bfloat16 [5] | float32 [5]\n", "~ optimizers/0/groups/0/lr  = 0.5 | 0.25\n",
        "+ extra  = 1\n", "      0.25             2 of 6000  models/0/layer.weight\n",
        "2 of 6 tensors that both have differ\n"})
    CHECK_THAT(output, ContainsSubstring(line));
  CHECK(output.find("models/0/layer.steps") < output.find("6000  models/0/layer.weight"));
  const auto reversed = run_verb({"checkpoint", "diff", b, a});
  CHECK_THAT(reversed.output,
             ContainsSubstring("- models/0/added  float32 [1]\n") && ContainsSubstring("- extra  = 1"));
  CHECK_THAT(run_verb({"checkpoint", "diff", a, b, "--top", "1"}).output, ContainsSubstring("and 1 more tensors"));
}

TEST_CASE("diff compares models of any format, honours the tolerance, and returns 2 for unreadable input") {
  formats::write_pickle("one.pt", {{"w", at::zeros({10})}, {"same", at::ones({2})}});
  formats::write_pickle("other.pt", {{"same", at::ones({2}, at::kHalf)}, {"w", at::full({10}, 1e-3F)}});
  const auto differing = run_verb({"checkpoint", "diff", "one.pt", "other.pt"});
  CHECK(differing.code == 1);
  CHECK_THAT(differing.output, ContainsSubstring("0.001              10 of 10  w\n") &&
                                   ContainsSubstring("~ same  float32 [2] | float16 [2]\n"));
  CHECK_THAT(run_verb({"checkpoint", "diff", "one.pt", "other.pt", "--tolerance", "0.01"}).output,
             ContainsSubstring("0 of 2 tensors that both have differ"));
  std::ofstream("broken.pt") << "no archive";
  CHECK(run_verb({"checkpoint", "diff", "one.pt", "broken.pt"}).code == 2);
  CHECK_THAT(run_verb({"checkpoint", "diff", "one.pt"}).output, ContainsSubstring("Expected two paths, got 1"));
  CHECK_THAT(run_verb({"checkpoint", "diff", "--help"}).output, ContainsSubstring("--tolerance"));
}

TEST_CASE("values are compared, not bits, of every type") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto odd = at::tensor({nan, infinity, 0.0F, 1.0F});
  CHECK(difference(odd, odd, 0).elements == 0);
  CHECK(difference(odd, at::tensor({nan, infinity, -0.0F, 1.0F}), 0).elements == 0);
  const auto found = difference(odd, at::tensor({0.0F, infinity, 0.0F, 1.5F}), 0);
  CHECK(found.elements == 2);
  CHECK(found.largest == std::numeric_limits<double>::infinity());
  const auto small = at::arange(4, at::kFloat);
  for (const auto type :
       {at::kDouble, at::kHalf, at::kBFloat16, at::kFloat8_e5m2, at::kInt, at::kByte, at::kUInt16, at::kComplexFloat}) {
    INFO(at::toString(type));
    CHECK(difference(small.to(type), small, 0).elements == 0);
    CHECK(difference(small.to(type), small.flip(0).to(type), 0).elements == 4);
    CHECK(difference(small.to(type), (small + 1).to(type), 0).largest == 1);
  }
  CHECK(difference(at::zeros({3'000'000}), at::ones({3'000'000}), 0.5).elements == 3'000'000);
  CHECK(difference(at::zeros({0}), at::zeros({0}), 0).elements == 0);
}
