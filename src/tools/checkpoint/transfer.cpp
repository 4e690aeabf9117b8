#include "tools/checkpoint/transfer.hpp"

#include <ATen/ops/empty.h>

#include <hortator/error.hpp>
#include <iostream>
#include <memory>

#include "accelerator/weights/checkpoint_weights.hpp"
#include "checkpoint/write/save.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/torch/pickle/writer.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "tools/checkpoint/accelerate_export.hpp"
#include "tools/checkpoint/byte_bar.hpp"
#include "tools/checkpoint/listing.hpp"
#include "tools/checkpoint/weights_file.hpp"
#include "weights/distributed_weights.hpp"
#include "weights/weight_source.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options transfer_options(bool chooses_model) {
  Options options;
  options.named.add_options()("help,h", "print this help");
  if (chooses_model) {
    options.named.add_options()("model", po::value<std::size_t>()->default_value(0)->value_name("N"),
                                "number of the model in a checkpoint with several")(
        "averages", po::value<std::string>()->default_value("", "")->value_name("NAME"),
        "write the averages of the Ema with this name, where it has some of a parameter")(
        "to", po::value<std::string>()->value_name("accelerate"),
        "write a folder that load_state() of Hugging Face Accelerate resumes from");
  }
  return options;
}

/// The input and output paths of the command line.
struct Route {
  fs::path from;
  fs::path to;
};

Route route_in(const po::variables_map& chosen, const std::string& usage) {
  const auto paths =
      chosen.count("paths") > 0 ? chosen["paths"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (paths.size() == 2) return {.from = paths[0], .to = paths[1]};
  throw UsageError({.what = text::concat("Expected two paths, got ", paths.size()), .hint = usage});
}

/// Rank 0 writes. @collective
void write_pickle(const mpi::Communicator& comm, const weights::WeightSource& source, const fs::path& path) {
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    formats::NamedSpecs specs;
    for (const auto& name : source.names()) specs.emplace_back(name, source.spec(name));
    ByteBar bar("export", bytes_of(source));
    formats::write_pickle(
        path, specs, [&](const std::string& name) { return source.tensor(name); },
        [&](std::int64_t bytes) { bar.advance(bytes); });
    source.require_unchanged();
  });
}

void report(const mpi::Communicator& comm, const weights::WeightSource& source, const fs::path& path) {
  if (comm.rank() != 0) return;
  std::cout << path.string() << ": " << text::count(static_cast<long long>(source.names().size()), "tensor") << " of "
            << units::bytes(static_cast<std::uint64_t>(bytes_of(source))) << " from " << source.path().string() << '\n';
  const auto* parts = dynamic_cast<const weights::DistributedWeights*>(&source);
  const auto others = parts != nullptr ? static_cast<long long>(parts->objects().size()) : 0;
  if (others > 0) std::cout << "left out: " << text::count(others, "value") << " that are not tensors\n";
  const auto beside = accelerator::other_weights(source);
  if (!beside.empty()) std::cout << "left out: " << text::join(beside) << '\n';
}

std::unique_ptr<weights::WeightSource> open(const mpi::Communicator& comm, const fs::path& path, std::size_t model,
                                            const std::string& averages) {
  std::string found;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) found = newest_at(path).string();  // only one looks: a run may save there
  });
  found = mpi::broadcast(comm, std::string_view(found));
  std::unique_ptr<weights::WeightSource> source;
  mpi::all_or_none(comm, [&] { source = accelerator::open_weights_or_checkpoint(found, model, averages); });
  return source;
}

int print_transfer_help(const std::string& usage, const std::string& what, bool chooses_model) {
  std::cout << "usage: " << usage << "\n\n"
            << what << "Exit code: 0 done, 1 a file could not be read or written, 2 wrong usage.\n\n"
            << transfer_options(chooses_model).named;
  return 0;
}

constexpr auto export_usage = "hortator checkpoint export CHECKPOINT OUT.safetensors|OUT.pt, or --to accelerate OUT";
constexpr auto merge_usage = "hortator checkpoint merge FOLDER OUT.safetensors|OUT.pt";
constexpr auto import_usage = "hortator checkpoint import IN OUT";

/// Adds a tensor that is read when it is written.
void add_weight(checkpoint::Snapshot& snapshot, const weights::WeightSource& source, const std::string& name) {
  const auto spec = source.spec(name);
  const auto path = "models/0/" + name;
  snapshot.common.put(path, at::empty(spec.shape, at::TensorOptions(spec.type).device(at::kMeta)));
  snapshot.readers[path] = [&source, name] { return source.tensor(name); };
}

int write_weights(const Arguments& arguments, const char* usage) {
  const auto chosen = parse(arguments, with_text(transfer_options(true), "paths"));
  if (chosen.count("help") > 0) {
    return print_transfer_help(
        usage,
        "Writes the weights of a model, from a checkpoint or another file, to one file: safetensors, or the\n"
        "format of torch.save (.pt, .pth, .bin), which torch.load(weights_only=True) reads. CHECKPOINT is a folder as\n"
        "`checkpoint list` takes it; of a folder with several checkpoints the newest complete one is taken. Folders "
        "of\n"
        "torch.distributed.checkpoint, such as FSDP's pytorch_model_fsdp_0, and of DeepSpeed's ZeRO, whose parameters\n"
        "are written in fp32, are read as well, a tensor at a time: `hortator checkpoint merge` is the same verb.\n\n"
        "--to accelerate writes the whole checkpoint as a folder of Python: model.safetensors, optimizer.bin,\n"
        "scheduler.bin, random_states_N.pkl of each rank, scaler.pt, and custom_checkpoint_N.pkl of registered "
        "objects.\n",
        true);
  }
  const auto route = route_in(chosen, usage);
  if (chosen.count("to") > 0) {
    if (const auto& program = chosen["to"].as<std::string>(); program != "accelerate") {
      throw UsageError({.what = text::concat("--to: expected accelerate, got ", text::quote(program)),
                        .hint = "for a file of weights, leave --to out"});
    }
    if (!chosen["model"].defaulted()) {
      throw UsageError({.what = "--model was given with --to accelerate",
                        .why = "the folder holds all models",
                        .hint = "leave --model out, or write the weights of one model to a file"});
    }
    if (!chosen["averages"].defaulted()) {
      throw UsageError({.what = "--averages was given with --to accelerate",
                        .why = "a run resumes from the weights that are trained",
                        .hint = "write the averages to a file: hortator checkpoint export CHECKPOINT OUT.safetensors"});
    }
    return export_for_accelerate(route.from, route.to);
  }
  const auto extension = route.to.extension().string();
  const bool is_pickle = extension == ".pt" || extension == ".pth" || extension == ".bin";
  if (!is_pickle && extension != ".safetensors") {
    throw UsageError({.what = text::concat("Unknown file format of ", text::quote(route.to.string())),
                      .hint = "use a name that ends in .safetensors or .pt"});
  }
  return on_all_ranks([&](const mpi::Communicator& comm) {
    const auto source = open(comm, route.from, chosen["model"].as<std::size_t>(), chosen["averages"].as<std::string>());
    const auto target = fs::absolute(route.to);
    is_pickle ? write_pickle(comm, *source, target) : write_safetensors(comm, *source, target);
    report(comm, *source, route.to);
  });
}

}  // namespace

int export_weights(const Arguments& arguments) { return write_weights(arguments, export_usage); }

int merge_weights(const Arguments& arguments) { return write_weights(arguments, merge_usage); }

int import_weights(const Arguments& arguments) {
  const auto chosen = parse(arguments, with_text(transfer_options(false), "paths"));
  if (chosen.count("help") > 0) {
    return print_transfer_help(
        import_usage,
        "Converts the weights of a model to a checkpoint, a tensor at a time. IN is a file of safetensors or\n"
        "torch.save (.pt, .pth, .bin), an index (.index.json), or a folder, also of torch.distributed.checkpoint or\n"
        "DeepSpeed's ZeRO. load_checkpoint_in_model reads the result. A folder that Accelerate saved needs no import:\n"
        "load_state reads it, optimizers included.\n",
        false);
  }
  const auto route = route_in(chosen, import_usage);
  return on_all_ranks([&](const mpi::Communicator& comm) {
    const auto source = open(comm, route.from, 0, "");
    checkpoint::Snapshot snapshot;
    mpi::all_or_none(comm, [&] {
      for (const auto& name : source->names()) add_weight(snapshot, *source, name);
    });
    snapshot.common.put("run/models", 1);
    ByteBar bar("import", bytes_of(*source) / comm.size(), audience_of(comm));
    checkpoint::save(comm, route.to, snapshot, {}, [&](std::int64_t bytes) { bar.advance(bytes); });
    source->require_unchanged();
    report(comm, *source, route.to);
  });
}

}  // namespace hortator::tools::checkpoints
