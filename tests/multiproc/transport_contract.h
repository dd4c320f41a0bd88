#pragma once

#include <tandem/communicator.h>

#include <string>
#include <vector>

namespace tandem {

// What every transport keeps, as facts that a GoogleTest can find false. All ranks call `check`, with tensors on the
// communicator's device.
struct ContractClause {
  std::string fact;
  void (*check)(Communicator& comm);
};

std::vector<ContractClause> transport_contract();

// Every clause in turn.
void check_contract(Communicator& comm);

}  // namespace tandem
