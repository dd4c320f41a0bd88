#pragma once

#include <tandem/error.h>

namespace tandem {

// The Error that `body` ends with; one with an empty message if it ends well.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Internal, "", ""};
}

}  // namespace tandem
