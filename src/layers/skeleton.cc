#include "layers/skeleton.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "layers/public_copy.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::layers {
namespace {

struct Folder {
  const char* path;
  mode_t mode = 0755;
};

// What programs expect to find, and the package managers' postinst scripts to write to.
constexpr std::array kFolders = std::to_array<Folder>({
    {"dev"},
    {"etc"},
    {"home"},
    {"media"},
    {"mnt"},
    {"opt"},
    {"proc", 0555},
    {"root", 0700},
    {"run"},
    {"run/lock", 01777},
    {"srv"},
    {"sys", 0555},
    {"tmp", 01777},
    {"var"},
    {"var/backups"},
    {"var/cache"},
    {"var/cache/apt"},
    {"var/cache/apt/archives"},
    {"var/cache/apt/archives/partial", 0700},
    {"var/cache/debconf"},
    {"var/cache/ldconfig", 0700},
    {"var/lib"},
    {"var/lib/apt"},
    {"var/lib/apt/lists"},
    {"var/lib/apt/lists/partial", 0700},
    {"var/lib/apt/mirrors"},
    {"var/lib/apt/mirrors/partial"},
    {"var/lib/apt/periodic"},
    {"var/lib/misc"},
    {"var/lib/systemd"},
    {"var/local"},
    {"var/log"},
    {"var/log/apt"},
    {"var/mail"},
    {"var/opt"},
    {"var/spool"},
    {"var/tmp", 01777},
});

// The memory of package managers and of the tools that their scripts call.
constexpr std::array kPackageState = std::to_array<const char*>({
    "dpkg",
    "pam",
    "python",
    "sgml-base",
    "ucf",
    "xml-core",
});

// What is private although its mode may say otherwise, by the path below /etc. A '*' also stands
// for '/'.
constexpr std::array kPrivate = std::to_array<const char*>({
    "*.jks",
    "*.key",
    "*.keytab",
    "*.kdbx",
    "*.p12",
    "*.pfx",
    "*/private",
    "*_history",
    "*credentials*",
    "*htpasswd*",
    "*netrc",
    "*privkey*",
    "*sasl_passwd*",
    "*secret*",
    "*token*",
    "*ssh_host_*_key",
    ".pwd.lock",
    "NetworkManager",
    "apt/auth.conf*",
    "ceph",
    "cloud",
    "credstore*",
    "cryptsetup*",
    "crypttab",
    "docker",
    "environment",
    "exim4/passwd.client",
    "fstab",
    "group-",
    "gshadow*",
    "ipsec.*",
    "kubernetes",
    "letsencrypt",
    "libvirt",
    "luks*",
    "munge",
    "mysql/debian.cnf",
    "netplan",
    "openvpn",
    "passwd-",
    "ppp",
    "private",
    "rancher",
    "security/opasswd",
    "shadow*",
    "slurm*",
    "sudoers*",
    "swanctl",
    "wireguard",
    "wpa_supplicant",
});

// What we write ourselves, or copy even where it is a link or a mount.
constexpr std::array kOwn = std::to_array<const char*>({"hostname", "machine-id"});
constexpr std::array kFollowed =
    std::to_array<const char*>({"group", "hosts", "nsswitch.conf", "passwd", "resolv.conf"});

bool leaveOutOfEtc(const std::string& path) {
  const auto isPath = [&](const char* other) { return path == other; };
  const auto matches = [&](const char* pattern) {
    return ::fnmatch(pattern, path.c_str(), FNM_CASEFOLD) == 0;
  };
  return std::ranges::any_of(kOwn, isPath) || std::ranges::any_of(kFollowed, isPath) ||
         std::ranges::any_of(kPrivate, matches);
}

bool leaveNothingOut(const std::string& /*path*/) {
  return false;
}

Result<Fd> openFolder(int dir, const char* path) {
  return sys::openAt(dir, path, O_RDONLY | O_DIRECTORY);
}

Result<> writeFile(int dir, const char* name, std::string_view text, mode_t mode) {
  CAY_ASSIGN(const Fd file, sys::openAt(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  CAY_TRY(sys::writeAll(file.get(), text));
  return sys::chmodFd(file.get(), mode);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    out.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

// The users stay, since files belong to them; nobody has a password, and root lives in /root.
struct Accounts {
  std::string passwd;
  std::string shadow;
};
Accounts cleanAccounts(std::string_view hostPasswd) {
  Accounts out;
  for (const std::string_view line : split(hostPasswd, '\n')) {
    std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() != 7) continue;
    fields[1] = "x";
    if (fields[0] == "root") fields[5] = "/root";
    for (size_t i = 0; i < fields.size(); ++i) {
      out.passwd.append(fields[i]).append(i + 1 < fields.size() ? ":" : "\n");
    }
    out.shadow.append(fields[0]).append(":*:::::::\n");
  }
  return out;
}

Result<> writeAccounts(int etc) {
  const auto passwd = sys::readFile((sys::fdPath(etc) + "/passwd").c_str(), size_t{16} << 20);
  if (!passwd) return {};
  const Accounts accounts = cleanAccounts(*passwd);
  CAY_TRY(writeFile(etc, "passwd", accounts.passwd, 0644));
  return writeFile(etc, "shadow", accounts.shadow, 0600);
}

Result<> buildEtc(int host, int skeleton) {
  CAY_ASSIGN(const Fd from, openFolder(host, "etc"));
  CAY_ASSIGN(const Fd etc, openFolder(skeleton, "etc"));
  CAY_TRY(copyPublic(from.get(), etc.get(), leaveOutOfEtc));
  for (const char* name : kFollowed) {
    CAY_TRY(copyPublicFile(from.get(), name, etc.get(), name));
  }
  CAY_TRY(writeAccounts(etc.get()));
  CAY_TRY(writeFile(etc.get(), "hostname", "sandbox\n", 0644));
  return writeFile(etc.get(), "machine-id", "", 0444);
}

Result<> buildVar(int host, int skeleton) {
  CAY_ASSIGN(const Fd lib, openFolder(skeleton, "var/lib"));
  for (const char* name : kPackageState) {
    const auto from = openFolder(host, (std::string("var/lib/") + name).c_str());
    if (!from) continue;
    CAY_TRY(sys::makeDirectoryAt(lib.get(), name, 0755));
    CAY_ASSIGN(const Fd to, openFolder(lib.get(), name));
    CAY_TRY(copyPublic(from->get(), to.get(), leaveNothingOut));
  }
  CAY_ASSIGN(const Fd apt, openFolder(lib.get(), "apt"));
  CAY_TRY(copyPublicFile(host, "var/lib/apt/extended_states", apt.get(), "extended_states"));
  CAY_TRY(sys::symlinkAt("/run", skeleton, "var/run"));
  return sys::symlinkAt("/run/lock", skeleton, "var/lock");
}

// "bin" → "usr/bin" and its like as the machine has them, and where its folders are to appear.
Result<> buildPlaces(int host, int skeleton) {
  for (const char* name : kSystemFolders) {
    const auto target = sys::readLinkAt(host, name);
    const bool mergedIntoUsr = target && target->find("usr/") != std::string::npos;
    if (mergedIntoUsr) CAY_TRY(sys::symlinkAt(target->c_str(), skeleton, name));
  }
  CAY_ASSIGN(const auto folders, systemFolders(host));
  for (const std::string& name : folders) {
    const auto made = sys::makeDirectoryAt(skeleton, name.c_str(), 0755);
    if (!made && made.error().sys != EEXIST) return made;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> systemFolders(int host) {
  std::vector<std::string> out;
  for (const char* name : kSystemFolders) {
    const auto stat = sys::statAt(host, name);
    if (!stat || !S_ISDIR(stat->st_mode)) continue;
    constexpr mode_t kOpen = S_IROTH | S_IXOTH;
    if ((stat->st_mode & kOpen) != kOpen) continue;
    CAY_ASSIGN(const Fd folder, openFolder(host, name));
    CAY_ASSIGN(const auto entries, sys::readDirectory(folder.get()));
    if (!entries.empty()) out.emplace_back(name);
  }
  return out;
}

Result<> buildSkeleton(int host, int skeleton) {
  for (const Folder& folder : kFolders) {
    CAY_TRY(sys::makeDirectoryAt(skeleton, folder.path, 0700));
    CAY_ASSIGN(const Fd made, openFolder(skeleton, folder.path));
    CAY_TRY(sys::chmodFd(made.get(), folder.mode));
  }
  CAY_TRY(buildPlaces(host, skeleton));
  CAY_TRY(buildEtc(host, skeleton));
  CAY_TRY(buildVar(host, skeleton));
  return sys::chmodFd(skeleton, 0755);
}

}  // namespace cay::layers
