"""Ten small robots of different kinds, written for these tests: URDF and MJCF."""

_INERTIAL = (
    '<inertial><origin xyz="{c}" rpy="0.1 -0.2 0.3"/><mass value="{m}"/>'
    '<inertia ixx="{i}" iyy="{j}" izz="{k}" ixy="0.0005" ixz="-0.0003" iyz="0.0002"/></inertial>'
)


def _link(name: str, mass: float, centre: str = "0.1 0.02 0.05") -> str:
    moments = {"i": 0.01 * mass, "j": 0.013 * mass, "k": 0.008 * mass}
    return f'<link name="{name}">{_INERTIAL.format(c=centre, m=mass, **moments)}</link>'


def _joint(name: str, kind: str, parent: str, child: str, axis: str, inner: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0.1 -0.05" rpy="0.2 0.4 -0.3"/><axis xyz="{axis}"/>'
        f'<limit lower="-2" upper="2" effort="40" velocity="3"/>{inner}</joint>'
    )


def _robot(*elements: str) -> str:
    return '<robot name="small">\n' + "\n".join(elements) + "\n</robot>"


URDF = {
    "arm of three turns": _robot(
        '<link name="base"/>',
        _link("upper", 2.0),
        _link("lower", 1.0),
        _link("hand", 0.4),
        _joint("shoulder", "continuous", "base", "upper", "0 0 1"),
        _joint("elbow", "revolute", "upper", "lower", "0 1 0", '<dynamics damping="0.2" friction="0.1"/>'),
        _joint("wrist", "revolute", "lower", "hand", "1 1 0"),
    ),
    "gantry": _robot(
        '<link name="base"/>',
        _link("bridge", 12.0),
        _link("trolley", 3.0),
        _link("hoist", 1.0),
        _joint("along", "prismatic", "base", "bridge", "1 0 0"),
        _joint("across", "prismatic", "bridge", "trolley", "0 1 0"),
        _joint("swing", "revolute", "trolley", "hoist", "0 1 1"),
    ),
    "gripper with mimic": _robot(
        '<link name="base"/>',
        _link("palm", 1.0),
        _link("left", 0.2),
        _link("right", 0.2),
        _link("tip", 0.15),
        _joint("roll", "revolute", "base", "palm", "1 0 0"),
        _joint("finger_left", "revolute", "palm", "left", "0 0 1"),
        _joint("finger_right", "revolute", "palm", "right", "0 0 -1", '<mimic joint="finger_left" multiplier="-0.8"/>'),
        _joint("tip_slide", "prismatic", "right", "tip", "0 1 0", '<mimic joint="finger_left" multiplier="0.1"/>'),
    ),
    "tree with two arms and a welded tool": _robot(
        '<link name="base"/>',
        _link("torso", 8.0),
        _link("left", 2.0),
        _link("right", 2.0),
        _link("tool", 0.7),
        _joint("waist", "revolute", "base", "torso", "0 0 1"),
        _joint("arm_left", "revolute", "torso", "left", "0 1 0"),
        _joint("arm_right", "revolute", "torso", "right", "1 1 1"),
        _joint("grip", "fixed", "right", "tool", "1 0 0"),
    ),
}

MJCF = {
    "pendulum from geoms": """<mujoco model="pendulum"><worldbody><geom type="plane" size="1 1 1"/>
      <body name="rod" pos="0 0 1"><joint name="hinge" axis="0 1 0" pos="0.02 0 0.1" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.2 0.5" size="0.04"/><geom size="0.1" pos="0.1 0.2 0.5" mass="2"/>
      </body>
      </worldbody></mujoco>""",
    "arm with classes and references": """<mujoco><compiler angle="degree" eulerseq="zyx"/>
      <default><joint damping="0.1"/><default class="arm"><joint armature="0.02" axis="0 1 0"/>
        <default class="stiff"><geom density="3000"/></default></default></default><option gravity="0.3 1 -9"/>
      <worldbody><body name="upper" pos="0 0 1" euler="10 20 30" childclass="arm">
        <joint name="j1" range="-90 90"/><joint name="j2" type="slide" axis="1 2 0" ref="0.1"/>
        <geom class="stiff" type="cylinder" size="0.05 0.2" zaxis="1 1 0"/>
        <frame pos="0.1 0.2 0.3" axisangle="1 1 0 40"><body name="lower">
          <joint name="j3" axis="1 0 1" ref="20" stiffness="5" springref="10"/>
          <geom type="box" size="0.1 0.2 0.05" pos="0.1 0 0" euler="5 5 60"/>
          <geom type="ellipsoid" size="0.1 0.2 0.05" pos="0.1 0 0" quat="1 2 3 4"/></body></frame></body></worldbody>
      </mujoco>""",
    "floating base with a leg": """<mujoco><compiler angle="radian"/><worldbody>
      <body name="trunk" pos="0 0 1" quat="1 0.2 0 0.1"><freejoint name="base"/>
        <inertial pos="0.01 0.02 0.03" mass="6" fullinertia="0.2 0.25 0.18 0.01 -0.02 0.005"/>
        <body name="thigh" pos="0.1 0 -0.1"><joint name="hip" axis="0 1 0" range="0.2 1.4"/>
          <inertial pos="0 0 -0.2" mass="1.5" diaginertia="0.02 0.02 0.004" quat="1 0 0.3 0"/>
          <body name="shank" pos="0 0 -0.4"><joint name="knee" axis="0 1 0.1"/>
            <inertial pos="0 0 -0.15" mass="0.8" diaginertia="0.01 0.01 0.002"/>
          </body></body></body></worldbody></mujoco>""",
    "ball joint and hinges": """<mujoco><worldbody><body name="humerus" pos="0 0.2 1.4">
        <joint name="shoulder" type="ball" pos="0 0 0.02"/><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04"/>
        <body name="ulna" pos="0 0 -0.3"><joint name="elbow" axis="1 0 0"/><joint name="turn" axis="0 0 1"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03"/></body></body></worldbody></mujoco>""",
    "coupled joints": """<mujoco><worldbody>
      <body name="crank"><joint name="a" axis="0 1 0"/><geom type="box" size="0.2 0.02 0.02" pos="0.2 0 0"/>
        <body name="cam" pos="0.4 0 0"><joint name="b" axis="0 1 0"/>
          <geom type="box" size="0.1 0.02 0.02" pos="0.1 0 0"/>
          <body name="valve" pos="0.2 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size="0.05"/></body>
        </body></body></worldbody>
      <equality><joint joint1="b" joint2="a" polycoef="0.1 -0.5 0.2 0 0.05"/></equality></mujoco>""",
    "tendon and springs": """<mujoco><worldbody><site name="wall" pos="0.1 0 0.3"/>
      <body name="one" pos="0 0 0.5"><joint name="q1" axis="0 1 0" stiffness="3"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/><site name="via" pos="0.2 0 0.05"/>
        <body name="two" pos="0.3 0 0"><joint name="q2" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/><site name="end" pos="0.1 0 0.04"/></body></body>
      </worldbody><tendon><spatial name="cord" stiffness="200"><site site="wall"/><site site="via"/><site site="end"/>
      </spatial></tendon></mujoco>""",
}

FOUR_BAR = """<mujoco model="four_bar"><compiler angle="degree"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="crank"><joint name="q1" axis="0 -1 0"/><geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.01"/>
    <body name="coupler" pos="0.1 0 0"><joint name="q2" axis="0 -1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.01"/></body></body>
  <body name="rocker" pos="0.4 0 -0.2"><joint name="q3" axis="0 -1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.01"/></body></worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.3 0 0.1"/></equality></mujoco>"""
#: Tendons over a cylinder and a sphere, on the shorter way and on the side of a site.
FINGER = """<mujoco><worldbody><site name="root" pos="-0.3 0 0.06"/>
  <geom name="knob" type="sphere" size="0.04" pos="-0.1 0 0.03"/>
  <site name="left" pos="-0.1 0.1 0.03"/><site name="low" pos="0 0 -0.1"/><site name="inner" pos="0 0.01 0"/>
  <geom name="knuckle" type="cylinder" size="0.03 0.05" euler="90 10 0"/>
  <body name="finger"><joint name="bend" axis="0 1 0"/><joint name="spread" axis="0 0 1"/>
    <geom type="capsule" fromto="0.05 0 0 0.2 0 0" size="0.01"/>
    <site name="tip" pos="0.2 0.02 0.01"/></body></worldbody>
  <tendon>
    <spatial name="over"><site site="root"/><geom geom="knuckle"/><site site="tip"/></spatial>
    <spatial name="under"><site site="root"/><geom geom="knuckle" sidesite="low"/><site site="tip"/></spatial>
    <spatial name="ball"><site site="root"/><geom geom="knob"/><site site="tip"/></spatial>
    <spatial name="beside"><site site="root"/><geom geom="knob" sidesite="left"/><site site="tip"/></spatial>
    <spatial name="inside"><site site="root"/><geom geom="knuckle" sidesite="inner"/><site site="tip"/></spatial>
  </tendon></mujoco>"""
