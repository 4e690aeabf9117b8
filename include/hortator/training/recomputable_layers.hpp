#pragma once

#include <hortator/export.hpp>
#include <string>
#include <vector>

namespace hortator {

/// A module that can recompute() the layers which its own forward calls. recompute_layers() and the launcher's
/// --recompute-layers find it within a model, as they find the models of hortator::models.
class HORTATOR_API RecomputableLayers {
 public:
  virtual ~RecomputableLayers() = default;

  /// The class of these layers, by all names that it has: "BertLayer". Empty if there are none.
  virtual std::vector<std::string> classes_of_layers() const = 0;
  /// Their names within the module: "encoder.layer.0".
  virtual std::vector<std::string> names_of_layers() const = 0;
  /// Whether forward recomputes all of them from now on, or none.
  virtual void recompute_own_layers(bool on) = 0;
};

}  // namespace hortator
