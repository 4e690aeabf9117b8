#pragma once

#include <string_view>

namespace hortator::launching {

/// "n1" of "n1.site.org": lists of hosts, launchers and the system name a host with its domain or without it. An
/// address stays whole.
constexpr std::string_view without_domain(std::string_view host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace hortator::launching
