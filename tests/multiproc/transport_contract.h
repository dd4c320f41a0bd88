#pragma once

#include <tandem/communicator.h>

#include <string>
#include <vector>

namespace tandem {

// GoogleTest checks that every transport must pass. All ranks call `check`; tensors are on the device of the
// communicator.
struct ContractClause {
  std::string fact;
  void (*check)(Communicator& comm);
};

std::vector<ContractClause> transport_contract();

// Runs all clauses.
void check_contract(Communicator& comm);

}  // namespace tandem
