#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <hortator/parallel/data_parallel.hpp>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hortator::parallel {

/// Averages a model's buckets of gradients by PowerSGD: each large matrix M travels as two thin factors, P = M Q made
/// orthonormal and Q = M^T P, found by one power iteration a pass that begins with the last pass's Q. What the factors
/// miss stays on its rank, and is added to the gradient of the next pass.
class PowerSgd {
 public:
  explicit PowerSgd(const PowerSGDOptions& options);

  /// Leaves the mean over the ranks in the bucket's gradients, the same on all; if one rank's are not finite, matrices
  /// become NaN, and errors stay what they were. @collective over the bucket's ranks
  void average(BucketExchange& bucket);

  /// What a resumed run needs: this rank's errors, the factors and the number of passes.
  StateDict state() const;
  /// Continues from the states of all ranks of a run; `mine` is the place of this rank's among them, or nothing if the
  /// run had other ranks: then each rank gets the mean of their errors, so that nothing is lost in the average. Returns
  /// whether errors were left out, because ranks had gradients of other shapes.
  bool load(const std::vector<StateDict>& of_ranks, std::optional<std::size_t> mine);
  /// Copies all of it, and returns a function that puts the copy back.
  std::function<void()> remember();

 private:
  /// What is kept of a parameter's gradient; undefined before it is needed.
  struct Kept {
    at::Tensor error = {};   ///< rows x columns: of this rank, not yet sent
    at::Tensor factor = {};  ///< columns x rank: the last Q
  };
  /// A gradient that travels in factors.
  struct Matrix {
    const BucketPart* part;
    Kept* kept;
    at::Tensor value;  ///< with the error of the passes before
    at::Tensor left;   ///< P
  };

  bool pays(const at::Tensor& gradient) const;
  at::Tensor first_factor(const std::string& name, std::int64_t columns) const;
  Matrix make_matrix(const BucketPart& part);
  void average_in_factors(std::vector<Matrix>& matrices, std::vector<at::Tensor>& others, BucketExchange& bucket);
  void exchange_right(std::vector<Matrix>& matrices, BucketExchange& bucket);

  PowerSGDOptions options_;
  std::int64_t passes_ = 0;
  std::map<std::string, Kept> kept_;
};

}  // namespace hortator::parallel
