#include "models/layers/rotary.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/config/config_fields.hpp"
#include "models/layers/plain_tensor.hpp"

namespace hortator::models {
namespace {

/// The older names: rope_theta in config.json itself, and rope_scaling with "type".
ConfigFields rope_fields(const ConfigFields& fields) {
  auto older = fields.object("rope_scaling");
  auto newer = fields.object("rope_parameters");
  return older.empty() ? newer : older;
}

double magnitude(double factor, double slope) { return factor <= 1 ? 1.0 : 0.1 * slope * std::log(factor) + 1.0; }

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ConfigFields& fields, std::int64_t width, std::int64_t max_positions,
                                 double theta)
    : width_(width), max_positions_(max_positions) {
  fields.require(width % 2 == 0, "head_dim", "expected an even number");
  const auto rope = rope_fields(fields);
  type_ = rope.text("rope_type", rope.text("type", "default"));
  rope.require_one_of("rope_type", type_, {"default", "linear", "dynamic", "yarn", "llama3"});
  theta_ = rope.number("rope_theta", fields.number("rope_theta", theta));
  rope.require(theta_ > 1, "rope_theta", "expected a number above 1");
  rope.require_value("partial_rotary_factor", 1.0);
  fields.require_value("partial_rotary_factor", 1.0);
  frequencies_ = frequencies(theta_);
  if (type_ == "linear" || type_ == "dynamic") factor_ = rope.number("factor");
  rope.require(factor_ > 0, "factor", "expected a number above 0");
  fields.require(width > 2 || !is_dynamic(), "head_dim", "expected more than 2 for dynamic scaling");
  if (type_ == "linear") {
    for (auto& frequency : frequencies_) frequency /= factor_;
  }
  if (type_ == "llama3") scale_as_llama3(rope);
  if (type_ == "yarn") scale_as_yarn(rope);
  rope.require_all_used();
}

std::vector<double> RotaryEmbedding::frequencies(double base) const {
  std::vector<double> all;
  for (std::int64_t i = 0; i < width_; i += 2)
    all.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(width_)));
  return all;
}

// Wavelengths beyond the original context are stretched by the factor, short ones stay, and those between are mixed.
void RotaryEmbedding::scale_as_llama3(const ConfigFields& rope) {
  const auto factor = rope.number("factor"), low = rope.number("low_freq_factor"),
             high = rope.number("high_freq_factor");
  const auto context = static_cast<double>(rope.integer("original_max_position_embeddings", max_positions_));
  rope.require(factor > 0 && high > low, "high_freq_factor", "expected more than low_freq_factor");
  for (auto& frequency : frequencies_) {
    const auto turns = context * frequency / (2 * std::numbers::pi);
    const auto kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency *= kept + (1 - kept) / factor;
  }
}

// Frequencies with many turns in the original context stay, those with few are interpolated, with a ramp between them.
void RotaryEmbedding::scale_as_yarn(const ConfigFields& rope) {
  const auto context = static_cast<double>(rope.integer("original_max_position_embeddings", max_positions_));
  const auto factor = rope.number("factor", static_cast<double>(max_positions_) / context);
  const auto width = static_cast<double>(width_);
  const auto dimension_of = [&](double turns) {
    return width * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta_));
  };
  auto low = dimension_of(rope.number("beta_fast", 32)), high = dimension_of(rope.number("beta_slow", 1));
  if (rope.flag("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const auto interpolated = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies_[i] *= interpolated / factor + 1 - interpolated;
  }
  const auto slope = rope.number("mscale", 0), slope_all = rope.number("mscale_all_dim", 0);
  const auto amplitude =
      slope != 0 && slope_all != 0 ? magnitude(factor, slope) / magnitude(factor, slope_all) : magnitude(factor, 1);
  amplitude_ = rope.number("attention_factor", amplitude);
}

RotaryEmbedding::Rotation RotaryEmbedding::rotation(const at::Tensor& positions, std::int64_t length,
                                                    at::ScalarType type) const {
  auto frequencies = frequencies_;
  if (is_dynamic() && length > max_positions_) {
    const auto stretch = factor_ * static_cast<double>(length) / static_cast<double>(max_positions_) - (factor_ - 1);
    const auto width = static_cast<double>(width_);
    frequencies = this->frequencies(theta_ * std::pow(stretch, width / (width - 2)));
  }
  const auto of_width = at::tensor(frequencies, at::kDouble).to(positions.device(), at::kFloat);
  const auto half = positions.to(at::kFloat).unsqueeze(-1) * of_width;  // [batch, time, width / 2]
  const auto cosine = half.cos() * amplitude_, sine = half.sin() * amplitude_;
  const auto for_halves = [&](const at::Tensor& first, const at::Tensor& second) {
    return at::cat({first, second}, -1).unsqueeze(1).to(type);
  };
  return {.cosine = for_halves(cosine, cosine), .sine = for_halves(-sine, sine)};
}

at::Tensor RotaryEmbedding::Rotation::operator()(const at::Tensor& heads) const {
  if (heads.size(2) == 1 && is_plain_and_small(heads) && is_plain(cosine) && is_plain(sine))
    return rotated_token(heads);
  const auto halves = heads.chunk(2, -1);
  return heads * cosine + at::cat({halves[1], halves[0]}, -1) * sine;
}

// One call instead of seven operators, whose calls take longer than the arithmetic.
at::Tensor RotaryEmbedding::Rotation::rotated_token(const at::Tensor& heads) const {
  auto rotated = at::empty(heads.sizes(), heads.options());
  const auto width = heads.size(-1), half = width / 2;
  const auto* from = heads.const_data_ptr<float>();
  auto* to = rotated.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < heads.size(0) * heads.size(1); ++row, from += width, to += width) {
    const auto angle = cosine.size(0) == 1 ? 0 : row / heads.size(1) * width;
    const auto *const c = cosine.const_data_ptr<float>() + angle, *const s = sine.const_data_ptr<float>() + angle;
    for (std::int64_t i = 0; i < half; ++i) {
      to[i] = from[i] * c[i] + from[half + i] * s[i];
      to[half + i] = from[half + i] * c[half + i] + from[i] * s[half + i];
    }
  }
  return rotated;
}

}  // namespace hortator::models
