#include "base/seal.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/sha256.h"
#include "base/text.h"

namespace tandem {
namespace {

// Expected values: FIPS 180-4 (examples of NIST), and `sha256sum` for the lengths around a block.
TEST(Sha256, HasTheStandardsResults) {
  EXPECT_EQ(hex_text(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_text(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_text(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_text(sha256(std::string(55, 'a'))), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(hex_text(sha256(std::string(56, 'a'))), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(hex_text(sha256(std::string(64, 'a'))), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(hex_text(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6.
TEST(HmacSha256, HasTheStandardsResults) {
  EXPECT_EQ(hex_text(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_text(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_text(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Seal, IsOpenedByTheSameSecretAndName) {
  for (const std::string& value : {std::string(), std::string("\0x", 2), std::string(31, 'a'), std::string(100, 'b')}) {
    const std::string sealed = seal("secret", "key", value);
    EXPECT_EQ(unseal("secret", "key", sealed), value);
    EXPECT_EQ(unseal("Secret", "key", sealed), std::nullopt);
    EXPECT_EQ(unseal("secret", "kez", sealed), std::nullopt);
    EXPECT_EQ(unseal("secret", "", sealed), std::nullopt);
  }
}

TEST(Seal, OfAChangedValueIsNotOpened) {
  const std::string sealed = seal("secret", "key", "the value");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    for (const int bit : {1, 128}) {
      std::string changed = sealed;
      changed[i] = static_cast<char>(changed[i] ^ bit);
      EXPECT_EQ(unseal("secret", "key", changed), std::nullopt) << i;
    }
    EXPECT_EQ(unseal("secret", "key", sealed.substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(unseal("secret", "key", sealed + "x"), std::nullopt);
}

TEST(Seal, ShowsNeitherValueNorThatTwoAreEqual) {
  const std::string value(64, 'v');
  const std::string one = seal("secret", "key", value);
  const std::string other = seal("secret", "key", value);
  EXPECT_EQ(one.find("vv"), one.npos);
  EXPECT_NE(one, other);
  EXPECT_NE(one.substr(16, 64), other.substr(16, 64));
  EXPECT_NE(sealed_name("secret", "a"), sealed_name("secret", "b"));
  EXPECT_NE(sealed_name("secret", "a"), sealed_name("other", "a"));
  EXPECT_EQ(sealed_name("secret", "a"), sealed_name("secret", "a"));
}

TEST(Seal, SecretsDiffer) {
  std::set<std::string> secrets;
  for (int i = 0; i < 100; ++i) secrets.insert(new_secret());
  EXPECT_EQ(secrets.size(), 100U);
  EXPECT_EQ(secrets.begin()->size(), 32U);
}

}  // namespace
}  // namespace tandem
