#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// Stored losses: a file with a row for each machine kind and configuration.
namespace hortator::curves {

/// The losses of one configuration on one kind of machine.
struct Curve {
  std::string kind;                      ///< "cbf4b4ad226a855f 2.15.0": the hash of doctor's kernels, and LibTorch
  std::string features;                  ///< of a processor of this kind, for readers
  std::string configuration;             ///< "transformer"
  std::vector<std::string> losses = {};  ///< the 64 bits of each step's loss, as 16 hexadecimal digits
  std::string reason;                    ///< why these bits were stored

  friend bool operator==(const Curve&, const Curve&) = default;
};
using Curves = std::vector<Curve>;

std::string bits_of(double loss);

/// Throws UsageError, with the line, for anything but a whole file.
Curves parse(const std::string& text, const std::filesystem::path& file);
std::string to_text(const Curves& curves);

/// What differs: "transformer, step 3: 3ff0000000000000 (1), stored 3ff0000000000001 (1.0000000000000002)"; empty if
/// nothing does. `computed`: losses by configuration. All of them must be stored.
std::vector<std::string> differences(const Curves& stored, const std::string& kind,
                                     const std::map<std::string, std::vector<double>>& computed);

/// The file with these losses for this kind, in place of those before. Curves that are the same keep their reason.
Curves renewed(Curves stored, const Curve& common, const std::map<std::string, std::vector<double>>& computed);

}  // namespace hortator::curves
