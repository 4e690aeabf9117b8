#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/torch.h>

#include <fstream>
#include <hortator/derivatives.hpp>
#include <hortator/hortator.hpp>
#include <hortator/interop/view_tensor.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/compiled.hpp>
#include <hortator/models/exported.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/generate_texts.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/nn/pipeline.hpp>
#include <iostream>
#include <optional>

// What the guide's snippets assume to exist; declared only.
namespace given {

struct Digits {
  std::size_t size() const;
  hortator::Example<> get(std::int64_t i) const;
};

struct Samples {
  std::optional<hortator::Example<>> next();
};

struct Field {  // as Kokkos::View<double**>
  using value_type = double;
  static constexpr int rank = 2;
  double* data() const;
  std::size_t extent(int dim) const;
  std::size_t stride(int dim) const;
};

extern Samples stream;
extern torch::nn::Linear net;
extern torch::optim::AdamW adamw;
extern Digits dataset;
extern hortator::Accelerator accelerator;
extern hortator::Model<torch::nn::Linear> model;
extern hortator::Optimizer optimizer;
extern hortator::Schedule schedule;
extern hortator::Example<> batch;
extern at::Tensor loss;
extern at::Tensor loss_sum;
extern at::Tensor images;
extern at::Tensor positions;
extern at::Tensor energies;
extern at::Tensor measured_forces;
extern Field density;
extern hortator_batch* samples;
extern at::Tensor scores;
extern std::int64_t tokens;
extern std::int64_t step;
extern std::string path;
extern std::vector<double> results;
extern std::vector<std::string> prompts;
extern std::shared_ptr<hortator::models::PretrainedModel> language_model;
extern hortator::models::Tokenizer tokenizer;
using Loader = decltype(hortator::data_loader(std::declval<Digits>(), hortator::LoaderOptions()));
extern Loader loader;

void save(const std::vector<double>& results);
std::vector<double> tokenize_once(const std::string& file);
void answer(const std::string& prompt);
std::vector<std::string> generate(const std::vector<std::string>& batch);
void train(std::int64_t batch_size);
void use(const hortator::Example<>& batch);

}  // namespace given
