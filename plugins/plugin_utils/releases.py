# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Official releases of containernetworking/plugins: file names and sha256 of the archives.

Sources of the digests, which agree wherever they overlap: the checksum files in the history of
https://github.com/kubernetes-sigs/kubespray (all architectures; not arm64 and amd64 of 1.9.0), and for amd64 and arm64
also https://github.com/containerd/nerdctl (Dockerfile.d/SHA256SUMS.d/) and https://github.com/vexxhost/ansible-collection-containers
(roles/cni_plugins/defaults/main.yml). They do not have riscv64, s390x and mips64le, which need the option checksum.
"""

from __future__ import annotations

import re

from ..module_utils._host.errors import HostError

# bindir.host_machine's word -> the architecture in the archive's name.
ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm": "arm",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
    "mips64le": "mips64le",
}

REFUSED = {
    "1.6.1": "its archives were replaced after publication, and some are gone; use '1.6.2', which has the same content",
    "1.7.0": "its archives were replaced after publication; use '1.7.1', which has the same content",
}

SHA256: dict[str, dict[str, str]] = {
    "0.9.1": {
        "amd64": "962100bbc4baeaaa5748cdbfce941f756b1531c2eadb290129401498bfac21e7",
        "arm64": "ef17764ffd6cdcb16d76401bac1db6acc050c9b088f1be5efa0e094ea3b01df0",
        "arm": "909e800d01cc61ffa26f2629e4a202a58d727e6ccaabd0310ef18d2b1e00943c",
        "ppc64le": "5bd3c82ef248e5c6cc388f25545aa5a7d318778e5f9bc0a31475361bb27acefe",
    },
    "1.0.0": {
        "amd64": "5894883eebe3e38f4474810d334b00dc5ec59bd01332d1f92ca4eb142a67d2e8",
        "arm64": "736335bc5923a37cfb6cc2305489ce6206bcc565004f525b5f7c3604f092aa3a",
        "arm": "910c2ba8b6f50b1081b219d6db04459b555940973249fcf39a792932a91f6d39",
        "ppc64le": "1a055924b1b859c54a97dc14894ecaa9b81d6d949530b9544f0af4173f5a8f2a",
    },
    "1.0.1": {
        "amd64": "5238fbb2767cbf6aae736ad97a7aa29167525dcd405196dfbc064672a730d3cf",
        "arm64": "2d4528c45bdd0a8875f849a75082bc4eafe95cb61f9bcc10a6db38a031f67226",
        "arm": "d35e3e9fd71687fc7e165f7dc7b1e35654b8012995bbfd937946b0681926d62d",
        "ppc64le": "f078e33067e6daaef3a3a5010d6440f2464b7973dec3ca0b5d5be22fdcb1fd96",
    },
    "1.1.0": {
        "amd64": "05d46ac19d01669d424ee57401c0deba101763ac494858064b4ea4ffdcc37c5d",
        "arm64": "33fc7b8d9d5be2d7f95e69e6a9e2af206879942f1e6b7615c04017dce5067f1a",
        "arm": "91e03a9287dcf8d0249159c90357b0f871ecf7ef0ca5014b2e143f2b30ae9c6d",
        "ppc64le": "98239a57452e93c0a27ba9f87bcbb80c7f982f225246f3fe4f3f5ac9b6b1becb",
    },
    "1.1.1": {
        "amd64": "b275772da4026d2161bf8a8b41ed4786754c8a93ebfb6564006d5da7f23831e5",
        "arm64": "16484966a46b4692028ba32d16afd994e079dc2cc63fbc2191d7bfaf5e11f3dd",
        "arm": "84f97baf80f9670a8cd0308dedcc8405d2bbc65166d670b48795e0d1262b4248",
        "ppc64le": "1551259fbfe861d942846bee028d5a85f492393e04bcd6609ac8aaa7a3d71431",
    },
    "1.2.0": {
        "amd64": "f3a841324845ca6bf0d4091b4fc7f97e18a623172158b72fc3fdcdb9d42d2d37",
        "arm64": "525e2b62ba92a1b6f3dc9612449a84aa61652e680f7ebf4eff579795fe464b57",
        "arm": "fde5bf2da73995196d248177ee8deeafa8005f33cbe1ab33bd2d75c17ca5a99a",
        "ppc64le": "4960283b88d53b8c45ff7a938a6b398724005313e0388e0a36bd6d0b2bb5acdc",
    },
    "1.3.0": {
        "amd64": "754a71ed60a4bd08726c3af705a7d55ee3df03122b12e389fdba4bea35d7dd7e",
        "arm64": "de7a666fd6ad83a228086bd55756db62ef335a193d1b143d910b69f079e30598",
        "arm": "86c4c866a01a8073ad14f6feec74de1fd63669786850c7be47521433f9570902",
        "ppc64le": "8ceff026f4eccf33c261b4153af6911e10784ac169d08c1d86cf6887b9f4e99b",
    },
    "1.4.0": {
        "amd64": "c2485ddb3ffc176578ae30ae58137f0b88e50f7c7f2af7d53a569276b2949a33",
        "arm64": "304d4389d5b732b7a73513d002c4895f731d030682d40653f411e10e39114194",
        "arm": "6cddc5804fff93b914f3314d62fa03f24d69f59c03940e0bbe85a370371b5bb8",
        "ppc64le": "c87a36a75ad1692933e3218cae734ba809ae2190c725a050ac9033fc96d2ed26",
    },
    "1.4.1": {
        "amd64": "2a0ea7072d1806b8526489bcd3b4847a06ab010ee32ba3c3d4e5a3235d3eb138",
        "arm64": "56fe62d73942cffd8f119d2b8ecb6a062e85f529a3dbfc7aa5cd83c2c01929a7",
        "arm": "50a794507a32edbae8e2fe450f228b5c9c5072e6d958d8c2dc5cd157d4d4fdb0",
        "ppc64le": "7de34118d5195396ed48d51af98fafe7e480e532ae8bd66cc10bf94346d6fa8c",
    },
    "1.5.0": {
        "amd64": "57a18478422cb321370e30a5ee6ce026321289cd9c94353ca697dddd7714f1a5",
        "arm64": "ab38507efe50c34bc2242a25c5783c19fdfe0376c65a2a91d48174d4f39f1fc2",
        "arm": "d381fe4a302bdb41a2c3cfbb0322fc3a0eef7cd852042c82e58401b8bbdd6f90",
        "ppc64le": "5eea6e7033a337fd98df00fa8a72a8ca8d2d2c69f6637555828515de94158cab",
    },
    "1.5.1": {
        "amd64": "77baa2f669980a82255ffa2f2717de823992480271ee778aa51a9c60ae89ff9b",
        "arm64": "c2a292714d0fad98a3491ae43df8ad58354b3c0bdf5d5a3e281777967c70fcff",
        "arm": "8579252e261d821ac92de9cf98e3f5fec89aeec805e7b5ac7e0a7edf3f9983c4",
        "ppc64le": "d02db67284064489ace75712f1eeea6b27fd5b630b9ad0876e5e42e153e00b80",
    },
    "1.6.0": {
        "amd64": "682b49ff8933a997a52107161f1745f8312364b4c7f605ccdf7a77499130d89d",
        "arm64": "db09ab057ecf60b05ba05cbec38d55b95cc139c7f1078e2e4857cc13af158cee",
        "arm": "10cd1b6b0f7c1e6faf18b2e46ee338beb1e1cce253efc7086f8bc1f4e1061d1a",
        "ppc64le": "d8d4bd74247407c8c73de057bc00adac28bb1ed2d2ee60a9dda278e3b398bcc2",
    },
    "1.6.2": {
        "amd64": "b8e811578fb66023f90d2e238d80cec3bdfca4b44049af74c374d4fae0f9c090",
        "arm64": "01e0e22acc7f7004e4588c1fe1871cc86d7ab562cd858e1761c4641d89ebfaa4",
        "arm": "ee31b0117206dc6242a0349443020025a71752d20d683c08caa70b32de179c4b",
        "ppc64le": "66dcb90886a039e919904f2fb761b88e03dedd25fb718196855432771eaaa325",
    },
    "1.7.1": {
        "amd64": "1a28a0506bfe5bcdc981caf1a49eeab7e72da8321f1119b7be85f22621013098",
        "arm64": "119fcb508d1ac2149e49a550752f9cd64d023a1d70e189b59c476e4d2bf7c497",
        "arm": "1df4fa20a0fe279bda5a671d172911de2c1a81813bfe8fb0398b46fa9e49d0fb",
        "ppc64le": "15a4070b20c4d6c8bc9b3db52d8303d0520ff7a89cd2e87a2fdf1e9b8dd69373",
    },
    "1.8.0": {
        "amd64": "ab3bda535f9d90766cccc90d3dddb5482003dd744d7f22bcf98186bf8eea8be6",
        "arm64": "57ce466fc3b79db1f19b8f4c63e07a1112306efa53c94fe810a2150dd9e07ddb",
        "arm": "7ed51af2ee5c7784c8b978b293ad1cf6c3022d7792a2e79197fb9cdc98f3f752",
        "ppc64le": "63f762df723eb7dbee83e3751167ff1e18cf7b86ef5b48eb620c91af2def434a",
    },
    "1.9.0": {
        "amd64": "58c03705426e929658f45a851df15a86d06ef680cacbf3f2dc127731ca265c28",
        "arm64": "2596ef56329dd1269026f46b8df262f09ba43c92dbfb940e1e69fbccccd30a29",
    },
    "1.9.1": {
        "amd64": "b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303",
        "arm64": "56171987d3947707c3563db2f4001bccaf50fd63468611b9f3cbecb1375ee7ec",
        "arm": "21416880bea0541d78afaf106373d6dbb471edb92c0114fa263494fe4aec8d3b",
        "ppc64le": "44b743ff6e4dc145eb4e5280e49eca182fcc586d8d52ab431d5904b66e5ca6f7",
    },
}


def parse_version(version: str) -> str:
    """Return the version without a leading v. Raises HostError ``bad_version``, or ``refused_version``."""
    number = version.strip().removeprefix("v")
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", number):
        raise HostError(
            f"version: {version!r} is not the number of a release; write all three parts, in quotes, such as '1.9.1'",
            code="bad_version",
        )
    if number in REFUSED:
        raise HostError(f"version: {number} is refused: {REFUSED[number]}", code="refused_version")
    if tuple(int(part) for part in number.split(".")) < (0, 8, 0):
        raise HostError(
            f"version: {number} is older than 0.8.0, and its archives have other names; set 'src' and 'checksum'",
            code="refused_version",
        )
    return number


def urls(version: str) -> dict[str, str]:
    """Return machine -> URL of the release's archive."""
    base = f"https://github.com/containernetworking/plugins/releases/download/v{version}/cni-plugins-linux"
    return {machine: f"{base}-{arch}-v{version}.tgz" for machine, arch in ARCHITECTURES.items()}


def checksums(version: str) -> dict[str, str]:
    """Return machine -> ``sha256:...`` of the release's archive, for the machines where it is known."""
    known = SHA256.get(version, {})
    return {machine: f"sha256:{known[arch]}" for machine, arch in ARCHITECTURES.items() if arch in known}
