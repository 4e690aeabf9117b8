// Compressed files: train on JSON lines that gzip or zstd has compressed, without unpacking them.
//
// JsonStream reads files one after the other. Their first bytes show how they are compressed, and plain files may be
// among them. ShuffleBuffer keeps --buffer samples in memory and draws from them, because a stream has the order of its
// files. Every rank decompresses all files, and a run resumes on any number of ranks; with --per-rank each rank
// decompresses only its own (FilesPerRank), and a run resumes on the same number.
//
//     hortator launch -n 2 compressed_files                         writes plain files, and trains on them
//     gzip runs/compressed_files/data/*.jsonl
//     hortator launch -n 2 compressed_files --data runs/compressed_files/data/*.gz      gives the same model
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <filesystem>
#include <fstream>
#include <hortator/datasets.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <iomanip>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

using Files = std::vector<std::filesystem::path>;

/// Writes the toy's samples, one a line: {"point": [0.5, -1.25], "ring": 1}
void write_samples(const Files& files) {
  constexpr std::int64_t samples = 384;
  std::int64_t first = 0;
  for (const auto& file : files) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file);
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out << std::setprecision(9);
    const toy::Rings rings(samples, first);
    for (std::int64_t i = 0; i < rings.size(); ++i) {
      const auto sample = rings.get(i);
      out << R"({"point": [)" << sample.data[0].item<float>() << ", " << sample.data[1].item<float>()
          << R"(], "ring": )" << sample.target.item<std::int64_t>() << "}\n";
    }
    first += samples;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "compressed_files", "trains on JSON lines that gzip or zstd has compressed");
    const auto data =
        options.texts("data", "files with the members point and ring (default: plain files that it writes)");
    const auto buffer = options.number("buffer", 256, "samples to draw from; 1: the order of the files");
    const bool per_rank = options.flag("per-rank", "each rank reads files of its own");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    Files files(data.begin(), data.end());
    if (files.empty()) {
      for (const auto* name : {"0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl"}) files.push_back(run_dir / "data" / name);
      accelerator.main_process_first([&] {
        if (accelerator.is_main_process()) write_samples(files);
      });
    }

    const auto train_on = [&](auto stream) {
      hortator::set_seed(7);
      toy::Net net;
      torch::optim::AdamW adamw(net->parameters(), 1e-2);
      hortator::ShuffleBuffer shuffled(std::move(stream), {.size = buffer, .seed = 7});
      auto [model, optimizer, train] = accelerator.prepare(
          net, adamw, hortator::data_loader(std::move(shuffled), {.batch_size = 32}, hortator::join_rows));
      std::int64_t samples = 0;
      while (train.epoch() < epochs) {
        for (auto& batch : train) {
          const auto scores = model(batch.tensors.at("point"));
          accelerator.backward(at::cross_entropy_loss(scores, batch.tensors.at("ring")));
          optimizer.step();
          optimizer.zero_grad();
          samples += train.new_samples();
        }
      }
      accelerator.print(samples, " samples in ", epochs, " epochs of ", files.size(), " files");
      toy::report(accelerator, model);
    };
    const std::vector<hortator::TableColumn> members = {{"point"}, {"ring", hortator::ColumnType::int64}};
    if (per_rank) {
      train_on(hortator::FilesPerRank<hortator::JsonStream>(files, members));
    } else {
      train_on(hortator::JsonStream(files, members));
    }
  });
}
