#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Who holds a TCP port, for an error message: "python3 (process 4711: python3 train.py)", or as much as we may see.
std::string tcp_port_holder(int port);

// Who holds a name of the abstract socket space.
std::string unix_socket_holder(std::string_view name);

}  // namespace tandem
